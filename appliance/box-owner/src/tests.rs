use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use stdx::{SystemClock, TestClock};

use crate::claim::TRIES_MAX;

use super::{AccessError, CLAIM, OWNER, Owner, PrivateFiles};

const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

#[derive(Default)]
struct Memory(Mutex<HashMap<String, Vec<u8>>>);

impl PrivateFiles for Memory {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(name).cloned())
    }
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().insert(name.to_owned(), content.to_vec());
        Ok(())
    }
}

struct Full;

impl PrivateFiles for Full {
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
    assert_eq!(left, TRIES_MAX);
    let wrong = if code == "000000" { "000001" } else { "000000" };
    assert!(matches!(owner.claim(&code, "short", FROM), Err(AccessError::Passphrase(_))));
    assert!(matches!(owner.claim(wrong, "long enough", FROM), Err(AccessError::WrongCode(_))));
    // A power cut changes neither the code nor the count.
    let owner = open(&keep);
    assert_eq!(owner.code(), Some((code.clone(), TRIES_MAX - 1)));
    let token = owner.claim(&code, "long enough", FROM).unwrap().token;
    assert!(owner.session(&token).is_some());
    assert!(matches!(owner.claim(&code, "me too, me too", FROM), Err(AccessError::Claimed)));
    assert!(owner.code().is_none());
    // Another power cut: the owner stays, the sessions end.
    let owner = open(&keep);
    assert!(owner.claimed() && owner.session(&token).is_none());
    assert!(matches!(owner.enter("long enoubh", FROM), Err(AccessError::WrongPassphrase)));
    let token = owner.enter("long enough", FROM).unwrap().token;
    owner.leave(&token);
    assert!(owner.session(&token).is_none());
}

#[test]
fn a_file_that_cannot_be_read_lets_nobody_in() {
    let keep = Arc::new(Memory::default());
    keep.replace(OWNER, b"{").unwrap();
    let owner = Owner::open(keep, Arc::new(SystemClock)).unwrap();
    assert!(owner.claimed() && owner.code().is_none(), "no newcomer becomes the owner");
    for passphrase in ["", "long enough"] {
        assert!(matches!(owner.enter(passphrase, FROM), Err(AccessError::WrongPassphrase)));
    }
}

#[test]
fn nothing_is_answered_that_is_not_on_disk() {
    let owner = Owner::open(Arc::new(Full), Arc::new(SystemClock)).unwrap();
    assert!(matches!(owner.claim("000000", "long enough", FROM), Err(AccessError::Disk(_))));
    assert!(matches!(owner.claim("7KQ4M2", "long enough", FROM), Err(AccessError::Disk(_))));
    assert!(!owner.claimed());
}

#[test]
fn a_box_that_cannot_read_whose_it_is_is_claimed_by_nobody() {
    let owner = open(&Arc::new(Memory::default()));
    let (code, _) = owner.code().unwrap();
    let owner = owner.out_of_reach();
    assert!(owner.code().is_none() && !owner.claimed());
    assert!(matches!(owner.claim(&code, "long enough", FROM), Err(AccessError::Unknown)));
    assert!(matches!(owner.prove(&code, FROM), Err(AccessError::Unknown)));
    assert!(!owner.claimed());
}

#[test]
fn others_who_guess_keep_no_owner_from_claiming_and_logging_in() {
    let owner = open(&Arc::new(Memory::default()));
    let (code, _) = owner.code().unwrap();
    let wrong = if code == "000000" { "000001" } else { "000000" };
    let unknown = |number| IpAddr::V4(Ipv4Addr::from_bits(number));
    for number in 1..=100 {
        let refused = owner.prove(wrong, unknown(number));
        assert!(matches!(refused, Err(AccessError::WrongCode(_))), "{number}: {refused:?}");
    }
    // One that has guessed waits now, and no other.
    assert!(matches!(owner.prove(&code, unknown(100)), Err(AccessError::Wait(_))));
    assert!(owner.claim(&code, "long enough", FROM).is_ok());
    for number in 1..=3 {
        let refused = owner.enter("a wrong one", unknown(number)).map(drop);
        assert!(matches!(refused, Err(AccessError::WrongPassphrase)), "{number}: {refused:?}");
    }
    assert!(owner.enter("long enough", FROM).is_ok());
    assert!(owner.standing(FROM) < owner.standing(unknown(1)));
}

#[test]
fn one_address_guesses_no_more_than_twenty_codes() {
    let clock = Arc::new(TestClock::at(Timestamp::UNIX_EPOCH));
    let owner = Owner::open(Arc::new(Memory::default()), Arc::clone(&clock) as _).unwrap();
    let (code, _) = owner.code().unwrap();
    let wrong = if code == "000000" { "000001" } else { "000000" };
    for _ in 0..4 {
        for _ in 0..5 {
            assert!(matches!(owner.prove(wrong, FROM), Err(AccessError::WrongCode(_))));
        }
        clock.advance(SignedDuration::from_mins(1));
    }
    assert!(matches!(owner.prove(&code, FROM), Err(AccessError::Barred)));
}
