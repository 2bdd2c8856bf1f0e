//! Tests of the keys of a box whose board, TPM or passphrase changes.

use std::fs;
use std::path::Path;

use platform::tpm::{self, Sealer};
use stdx::Secret;

use super::{Error, Keys, Login, SEALED, is_older};

const KEY: [u8; 32] = [0x5a; 32];
const OTHER: &[u8] = b"AGE-SECRET-KEY-1OFBACKUPS";

/// Simulated TPM of a board. The number identifies the board.
struct Board(u8);

impl Sealer for Board {
    fn seal(&mut self, secret: &[u8]) -> Result<Vec<u8>, tpm::Error> {
        let hidden = secret.iter().map(|byte| byte ^ 0xa5);
        Ok([self.0].into_iter().chain(hidden).collect())
    }

    fn unseal(&mut self, sealed: &[u8]) -> Result<Vec<u8>, tpm::Error> {
        match sealed.split_first() {
            Some((board, hidden)) if *board == self.0 => {
                Ok(hidden.iter().map(|byte| byte ^ 0xa5).collect())
            }
            _ => Err(tpm::Error::OtherTpm),
        }
    }
}

fn on(state: &Path, board: Option<u8>) -> Keys {
    Keys::with(state, move || Ok(board.map(|board| Box::new(Board(board)) as Box<dyn Sealer>)))
}

fn secret(text: &str) -> Secret {
    Secret::from(text.to_owned())
}

/// Creates a state folder with an owner and unsealed keys.
fn owned() -> tempfile::TempDir {
    let state = tempfile::tempdir().unwrap();
    fs::create_dir(state.path().join("copies")).unwrap();
    for (name, bytes) in [(SEALED[0], KEY.as_slice()), (SEALED[1], OTHER)] {
        fs::write(state.path().join(name), bytes).unwrap();
        fs::write(state.path().join("copies").join(name), bytes).unwrap();
    }
    fs::write(state.path().join("owner.json"), "{\"hash\":\"first\"}").unwrap();
    state
}

/// Returns true if a file of the folder contains the bytes.
fn lies_in_the_open(state: &Path, bytes: &[u8]) -> bool {
    let folders = [state.to_owned(), state.join("copies")];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let files = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files
        .map(|path| fs::read(path).unwrap())
        .any(|file| file.windows(bytes.len()).any(|window| window == bytes))
}

#[test]
fn the_first_login_seals_the_keys_and_leaves_none_in_the_open() {
    let state = owned();
    let keys = on(state.path(), Some(1));
    assert_eq!(keys.login(&secret("correct horse"), true).unwrap(), Login::Sealed);
    assert!(!lies_in_the_open(state.path(), &KEY) && !lies_in_the_open(state.path(), OTHER));
    assert_eq!(keys.read(SEALED[0]).unwrap().unwrap(), KEY);
    assert_eq!(keys.read(SEALED[1]).unwrap().unwrap(), OTHER);
    assert_eq!(keys.login(&secret("correct horse"), true).unwrap(), Login::Unchanged);
}

#[test]
fn without_a_tpm_the_keys_stay_as_they_are() {
    let state = owned();
    let keys = on(state.path(), None);
    assert_eq!(keys.login(&secret("correct horse"), true).unwrap(), Login::Unchanged);
    assert_eq!(fs::read(state.path().join(SEALED[0])).unwrap(), KEY);
    assert!(!state.path().join("keys.recovery").exists());
}

#[test]
fn a_disk_on_another_board_opens_by_the_passphrase_of_the_owner_alone() {
    for board in [Some(2), None] {
        let state = owned();
        on(state.path(), Some(1)).login(&secret("correct horse"), true).unwrap();
        let moved = on(state.path(), board);
        let refused = moved.read(SEALED[0]).unwrap_err();
        assert!(matches!(refused, Error::Closed { .. } | Error::NoTpm(_)), "{refused:?}");
        assert!(stdx::chain(&refused).contains("owner's passphrase"), "{refused}");
        let refused = moved.login(&secret("wrong horse"), true).unwrap_err();
        assert!(matches!(refused, Error::Unrecovered(_)), "{refused:?}");
        assert!(!state.path().join(SEALED[0]).exists());
        assert_eq!(moved.login(&secret("correct horse"), true).unwrap(), Login::Recovered);
        assert_eq!(moved.read(SEALED[0]).unwrap().unwrap(), KEY);
        // The login after the restart seals the keys to this board, if it has a TPM.
        let expected = if board.is_some() { Login::Sealed } else { Login::Unchanged };
        assert_eq!(moved.login(&secret("correct horse"), true).unwrap(), expected);
        assert_eq!(moved.read(SEALED[1]).unwrap().unwrap(), OTHER);
    }
}

#[test]
fn another_passphrase_has_its_own_way_back() {
    let state = owned();
    let keys = on(state.path(), Some(1));
    keys.login(&secret("correct horse"), true).unwrap();
    fs::write(state.path().join("owner.json"), "{\"hash\":\"second\"}").unwrap();
    assert_eq!(keys.login(&secret("battery staple"), true).unwrap(), Login::Sealed);
    let moved = on(state.path(), Some(2));
    assert!(moved.login(&secret("correct horse"), true).is_err());
    assert_eq!(moved.login(&secret("battery staple"), true).unwrap(), Login::Recovered);
}

#[test]
fn a_restored_key_wins_over_a_sealed_one_and_is_sealed_in_its_place() {
    let state = owned();
    let keys = on(state.path(), Some(1));
    keys.login(&secret("correct horse"), true).unwrap();
    fs::write(state.path().join(SEALED[0]), [7; 32]).unwrap();
    assert_eq!(keys.read(SEALED[0]).unwrap().unwrap(), [7; 32]);
    assert_eq!(keys.login(&secret("correct horse"), true).unwrap(), Login::Sealed);
    assert_eq!(keys.read(SEALED[0]).unwrap().unwrap(), [7; 32]);
    assert_eq!(keys.read(SEALED[1]).unwrap().unwrap(), OTHER);
}

/// Test that no key is sealed while a slot holds an older release, which would not find the key.
#[test]
fn nothing_is_sealed_while_a_slot_holds_an_older_release() {
    for (other, own, expected) in [
        (Some("1.4.0"), Some("1.5.0"), true),
        (Some("1.5.0"), Some("1.5.0"), false),
        (Some("1.6.0"), Some("1.5.0"), false),
        (Some("who knows"), Some("1.5.0"), true),
        (None, Some("1.5.0"), false),
    ] {
        assert_eq!(is_older(other, own), expected, "{other:?}");
    }
    let state = owned();
    let keys = on(state.path(), Some(1));
    assert_eq!(keys.login(&secret("correct horse"), false).unwrap(), Login::Unchanged);
    assert_eq!(fs::read(state.path().join(SEALED[0])).unwrap(), KEY);
}
