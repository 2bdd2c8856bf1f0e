use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use stdx::SystemClock;

use super::{CLAIM, Keep, OWNER, Owner, Refusal};

#[derive(Default)]
struct Memory(Mutex<HashMap<String, Vec<u8>>>);

impl Keep for Memory {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(name).cloned())
    }
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().insert(name.to_owned(), content.to_vec());
        Ok(())
    }
}

struct Full;

impl Keep for Full {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok((name == CLAIM).then(|| br#"{"code":"7KQ4M2","wrong":0}"#.to_vec()))
    }
    fn replace(&self, _: &str, _: &[u8]) -> io::Result<()> {
        Err(io::Error::other("no space left"))
    }
}

fn open(keep: &Arc<Memory>) -> Owner {
    Owner::open(Arc::clone(keep) as _, Arc::new(SystemClock)).unwrap()
}

#[test]
fn the_first_who_knows_the_code_owns_the_box() {
    let keep = Arc::new(Memory::default());
    let owner = open(&keep);
    let (code, left) = owner.code().unwrap();
    assert_eq!(left, 20);
    let wrong = if code == "000000" { "000001" } else { "000000" };
    assert!(matches!(owner.claim(&code, "short"), Err(Refusal::Passphrase(_))));
    assert!(matches!(owner.claim(wrong, "long enough"), Err(Refusal::WrongCode(19))));
    // The power fails: neither the code nor the count is another one.
    let owner = open(&keep);
    assert_eq!(owner.code(), Some((code.clone(), 19)));
    let token = owner.claim(&code, "long enough").unwrap().token;
    assert!(owner.session(&token).is_some());
    assert!(matches!(owner.claim(&code, "me too, me too"), Err(Refusal::Claimed)));
    assert!(owner.code().is_none());
    // And again.
    let owner = open(&keep);
    assert!(owner.claimed() && owner.session(&token).is_none());
    let from = "10.0.0.1".parse().unwrap();
    assert!(matches!(owner.enter("long enoubh", from), Err(Refusal::WrongPassphrase)));
    let token = owner.enter("long enough", from).unwrap().token;
    owner.leave(&token);
    assert!(owner.session(&token).is_none());
}

#[test]
fn a_file_that_cannot_be_read_lets_nobody_in() {
    let keep = Arc::new(Memory::default());
    keep.replace(OWNER, b"{").unwrap();
    let owner = Owner::open(keep, Arc::new(SystemClock)).unwrap();
    assert!(owner.claimed() && owner.code().is_none(), "no newcomer becomes the owner");
    let from = "10.0.0.1".parse().unwrap();
    for passphrase in ["", "long enough"] {
        assert!(matches!(owner.enter(passphrase, from), Err(Refusal::WrongPassphrase)));
    }
}

#[test]
fn nothing_is_answered_that_is_not_on_disk() {
    let owner = Owner::open(Arc::new(Full), Arc::new(SystemClock)).unwrap();
    assert!(matches!(owner.claim("000000", "long enough"), Err(Refusal::Disk(_))));
    assert!(matches!(owner.claim("7KQ4M2", "long enough"), Err(Refusal::Disk(_))));
    assert!(!owner.claimed());
}

#[test]
fn a_box_that_cannot_read_whose_it_is_is_claimed_by_nobody() {
    let owner = open(&Arc::new(Memory::default()));
    let (code, _) = owner.code().unwrap();
    let owner = owner.out_of_reach();
    assert!(owner.code().is_none() && !owner.claimed());
    assert!(matches!(owner.claim(&code, "long enough"), Err(Refusal::Unknown)));
    assert!(matches!(owner.prove(&code), Err(Refusal::Unknown)));
    assert!(!owner.claimed());
}
