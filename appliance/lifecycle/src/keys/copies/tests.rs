//! Tests of files that are damaged or missing, with and without a copy.

use std::fs;
use std::path::Path;

use apiserver::{AdminAccess, Pki, SigningKey};
use tempfile::TempDir;

use super::{CopyAction, FileState, OWNER, USERS, VITAL, act, keep, mend};

/// Creates a state folder as a start leaves it.
fn box_with_files() -> TempDir {
    let folder = TempDir::new().unwrap();
    let state = folder.path();
    let now = "2026-11-26T08:00:00Z".parse().unwrap();
    let pki = Pki::ensure(state, &["box".to_owned()], now).unwrap();
    SigningKey::ensure(state).unwrap();
    AdminAccess::ensure(state, &pki, "https://box:6443").unwrap();
    fs::write(state.join("sealing.key"), [7; 32]).unwrap();
    fs::write(state.join("boot-token.key"), [8; 32]).unwrap();
    fs::write(state.join(OWNER), br#"{"hash":"x"}"#).unwrap();
    fs::write(state.join(USERS), br#"{"users":[]}"#).unwrap();
    fs::write(state.join("backup.key"), "AGE-SECRET-KEY-1X").unwrap();
    for name in ["sealing.key.tpm", "backup.key.tpm"] {
        fs::write(state.join(name), b"tinboxT1\0\x01x\0\x01y").unwrap();
    }
    let made = "2026-11-26T08:00:00Z".parse().unwrap();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let header =
        backup::Header { version, needs: backup::NEEDS.to_owned(), made, ..Default::default() };
    fs::write(state.join("keys.recovery"), header.encode().unwrap()).unwrap();
    folder
}

fn read(state: &Path, path: &str) -> Option<Vec<u8>> {
    fs::read(state.join(path)).ok()
}

#[test]
fn any_file_that_is_damaged_or_gone_is_put_back() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("emptied", |path| fs::write(path, b"").unwrap()),
        ("zeros", |path| fs::write(path, [0; 4096]).unwrap()),
        ("overwritten", |path| fs::write(path, [0xff; 32 * 1024]).unwrap()),
        ("gone", |path| fs::remove_file(path).unwrap()),
    ];
    let folder = box_with_files();
    let state = folder.path();
    assert_eq!(mend(state), [""; 0], "all is well");
    for file in &VITAL {
        let before = read(state, file.path).unwrap();
        for (name, harm) in harms {
            harm(&state.join(file.path));
            let sentences = mend(state);
            let what = if name == "gone" { "is missing" } else { "is damaged" };
            let sentence = format!("The file {} {what}; its second copy is used", file.path);
            assert_eq!(sentences, [sentence], "{name}");
            assert_eq!(read(state, file.path).unwrap(), before, "{} {name}", file.path);
            assert_eq!(mend(state), [""; 0]);
        }
    }
}

#[test]
fn a_file_without_a_copy_is_set_aside_but_the_owner_s() {
    for file in &VITAL {
        let folder = box_with_files();
        let state = folder.path();
        fs::write(state.join(file.path), b"").unwrap();
        let sentences = mend(state);
        assert_eq!(sentences.len(), 1, "{}: {sentences:?}", file.path);
        assert!(sentences[0].ends_with(file.lost), "{sentences:?}");
        let stays = file.path == OWNER;
        assert_eq!(read(state, file.path).is_some(), stays, "{}", file.path);
        assert_eq!(read(state, &format!("{}.damaged", file.path)).is_some(), !stays);
    }
}

#[test]
fn what_changed_is_copied() {
    let folder = box_with_files();
    let state = folder.path();
    mend(state);
    fs::write(state.join(OWNER), br#"{"hash":"another"}"#).unwrap();
    keep(state);
    fs::write(state.join(OWNER), b"").unwrap();
    keep(state);
    assert_eq!(mend(state).len(), 1);
    assert_eq!(read(state, OWNER).unwrap(), br#"{"hash":"another"}"#);
}

#[test]
fn a_new_box_has_nothing_to_mend() {
    let folder = TempDir::new().unwrap();
    assert_eq!(mend(folder.path()), [""; 0]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn every_copy_of_a_secret_key_is_destroyed_with_it() {
    let own = crate::SECRET_KEYS.map(|key| format!("copies/{key}"));
    for key in own.iter().map(String::as_str).chain(["copies/backup.key"]) {
        assert!(super::KEYS.contains(&key), "{key}");
    }
}

#[test]
fn what_is_whole_is_never_replaced() {
    let all = [
        FileState::Absent,
        FileState::Damaged,
        FileState::Whole(b"old".to_vec()),
        FileState::Whole(b"new".to_vec()),
    ];
    for file in &all {
        for copy in &all {
            let act = act(file, copy);
            match (file, copy) {
                (FileState::Whole(_), _) if file == copy => assert_eq!(act, CopyAction::Leave),
                (FileState::Whole(_), _) => assert_eq!(act, CopyAction::Copy),
                (_, FileState::Whole(_)) => assert_eq!(act, CopyAction::PutBack),
                (FileState::Damaged, _) => assert_eq!(act, CopyAction::Lose),
                (FileState::Absent, _) => assert_eq!(act, CopyAction::Leave),
            }
        }
    }
}
