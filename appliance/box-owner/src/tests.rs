use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use stdx::{SystemClock, TestClock};

use crate::claim::TRIES_MAX;

use super::users::{ROLES, Role, USERS, ssh_keys};
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
    assert!(matches!(owner.enter("", "long enoubh", FROM), Err(AccessError::WrongPassphrase)));
    let token = owner.enter("", "long enough", FROM).unwrap().token;
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
        assert!(matches!(owner.enter("", passphrase, FROM), Err(AccessError::WrongPassphrase)));
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
        let refused = owner.enter("", "a wrong one", unknown(number)).map(drop);
        assert!(matches!(refused, Err(AccessError::WrongPassphrase)), "{number}: {refused:?}");
    }
    assert!(owner.enter("", "long enough", FROM).is_ok());
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

/// Box of an owner with the passphrase `long enough`.
fn owned(keep: &Arc<Memory>) -> Owner {
    let owner = open(keep);
    let (code, _) = owner.code().unwrap();
    owner.claim(&code, "long enough", FROM).unwrap();
    owner
}

#[test]
fn users_log_in_with_their_own_names_and_survive_a_restart() {
    let keep = Arc::new(Memory::default());
    let owner = owned(&keep);
    owner.add_user("jane", Role::Operator, "jane's words").unwrap();
    for name in ["", "owner", "joe", "Jane"] {
        let refused = owner.enter(name, "jane's words", FROM);
        let expected = if ["", "owner"].contains(&name) { "Wrong p" } else { "Wrong name or p" };
        assert!(refused.is_err_and(|it| it.to_string().starts_with(expected)), "{name}");
    }
    let owner = open(&keep);
    let token = owner.enter(" jane ", "jane's words", FROM).unwrap().token;
    let jane = owner.session(&token).unwrap().user;
    assert_eq!((jane.name.as_str(), jane.role), ("jane", Role::Operator));
    let of_owner = owner.enter("", "long enough", FROM).unwrap().token;
    let names: Vec<String> = owner.users().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["owner", "jane"]);
    assert!(owner.session(&of_owner).unwrap().user.is_owner());

    // A new role counts at once, in open sessions too.
    owner.set_role("jane", Role::Viewer).unwrap();
    assert_eq!(owner.session(&token).unwrap().user.role, Role::Viewer);
    owner.change_passphrase(&token, ("jane's words", "other words"), FROM).unwrap();
    assert!(owner.session(&of_owner).is_some(), "the owner's session stays");
    assert!(owner.enter("", "long enough", FROM).is_ok(), "the owner's passphrase stays");
    owner.set_ssh_keys("jane", vec!["ssh-ed25519 AAAA jane".to_owned()]).unwrap();
    owner.reset_passphrase("jane", "third words").unwrap();
    let jane = owner.users().into_iter().find(|it| it.name == "jane").unwrap();
    assert_eq!(jane.ssh_keys, Vec::<String>::new(), "another person may have added them");
    assert!(owner.session(&token).is_none(), "a forgotten passphrase may be another's");
    let token = owner.enter("jane", "third words", FROM).unwrap().token;
    owner.remove_user("jane").unwrap();
    assert!(owner.session(&token).is_none() && owner.session(&of_owner).is_some());
    let refused = owner.enter("jane", "third words", FROM);
    assert!(matches!(refused, Err(AccessError::WrongLogin)));
}

#[test]
fn names_that_are_not_valid_or_taken_are_refused() {
    let owner = owned(&Arc::new(Memory::default()));
    let long = "a".repeat(33);
    for name in ["", "Jane", "1a", "a:b", "a b", "a/b", long.as_str()] {
        let refused = owner.add_user(name, Role::Viewer, "long enough");
        assert!(matches!(refused, Err(AccessError::UserName)), "{name}");
    }
    owner.add_user("jane", Role::Viewer, "long enough").unwrap();
    for name in ["owner", "admin", "local", "jane"] {
        let refused = owner.add_user(name, Role::Viewer, "long enough");
        assert!(matches!(refused, Err(AccessError::Taken(_))), "{name}");
    }
    let short = owner.add_user("joe", Role::Viewer, "short");
    assert!(matches!(short, Err(AccessError::Passphrase(_))));
    for refused in [owner.set_role("joe", Role::Admin), owner.remove_user("owner")] {
        assert!(matches!(refused, Err(AccessError::NoUser(_))));
    }
}

#[test]
fn a_damaged_file_of_users_keeps_the_owner_in_and_is_not_overwritten() {
    let keep = Arc::new(Memory::default());
    owned(&keep).add_user("jane", Role::Viewer, "long enough").unwrap();
    keep.replace(USERS, b"{").unwrap();
    let owner = open(&keep);
    assert!(owner.enter("", "long enough", FROM).is_ok());
    let refused = owner.add_user("joe", Role::Viewer, "long enough");
    assert!(matches!(refused, Err(AccessError::Damaged)));
    assert_eq!(keep.load(USERS).unwrap().unwrap(), b"{");
}

#[test]
fn ssh_keys_are_lines_of_public_keys() {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk0X1w7K6s3yT1p8h2v5Jc9bq0eRkUuZ4mWnDfLxTgA j";
    let keys = ssh_keys(&format!("# laptop\n{key}\n")).unwrap();
    assert_eq!(keys, [key]);
    let refused = ssh_keys(&format!("hello\n{}", &key[..40])).unwrap_err().to_string();
    assert!(refused.starts_with("Line 1 is") && refused.contains("Line 2 is"), "{refused}");
    let owner = owned(&Arc::new(Memory::default()));
    owner.set_ssh_keys("owner", keys.clone()).unwrap();
    assert_eq!(owner.users()[0].ssh_keys, keys);
}

#[test]
fn each_role_has_a_name_and_a_group() {
    for role in ROLES {
        assert_eq!(Role::named(role.word()), Some(role));
        assert_eq!(role.group(), format!("tinbox:{}", role.word()));
    }
    assert_eq!(Role::named("root"), None);
}
