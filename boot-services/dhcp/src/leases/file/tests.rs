//! Tests that leases are read as written, and that other files are refused with a reason.

use std::net::Ipv4Addr;
use std::path::Path;

use redb::Database;
use stdx::MacAddr;

use super::{FORMAT_KEY, LEASES, LeaseFile};
use crate::leases::{Change, Lease, LeaseState, LeaseStore as _};
use crate::vectors::MAC;

/// MAC of another machine.
const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 10]);

fn lease(last: u8, state: LeaseState) -> Lease {
    let (address, expires) = (Ipv4Addr::new(10, 0, 0, last), 1 << 40);
    Lease { address, mac: MAC, state, expires, last_seen: 77, reserved: false }
}

fn refused(path: &Path) -> String {
    let error = LeaseFile::open(path).and_then(|file| file.load()).unwrap_err();
    stdx::chain(&error)
}

#[test]
fn leases_are_there_after_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leases.redb");
    let bound = Lease { reserved: true, ..lease(1, LeaseState::Bound) };
    let stored = [bound, lease(2, LeaseState::Released), lease(3, LeaseState::Declined)];
    let file = LeaseFile::open(&path).unwrap();
    assert_eq!(file.load().unwrap(), []);
    file.commit(&stored.map(Change::Put)).unwrap();
    file.commit(&[Change::Put(lease(4, LeaseState::Offered)), Change::Put(lease(5, bound.state))])
        .unwrap();
    file.commit(&[Change::Remove(Ipv4Addr::new(10, 0, 0, 5))]).unwrap();
    drop(file);
    assert_eq!(LeaseFile::open(&path).unwrap().load().unwrap(), stored);
}

#[test]
fn the_format_is_the_one_that_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leases.redb");
    let value = b"\x52\x54\x00\x77\x00\x01\x01\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\x4d";
    let written = [(FORMAT_KEY, &[0, 1][..]), (&[10, 0, 0, 1], value)];
    write(&path, &written);
    assert_eq!(LeaseFile::open(&path).unwrap().load().unwrap(), [lease(1, LeaseState::Bound)]);
}

fn write(path: &Path, rows: &[(&[u8], &[u8])]) {
    let database = Database::create(path).unwrap();
    let txn = database.begin_write().unwrap();
    for (key, value) in rows {
        txn.open_table(LEASES).unwrap().insert(key, value).unwrap();
    }
    txn.commit().unwrap();
}

/// An old release, which ignores table `reserved`, gave the address to another machine.
#[test]
fn a_mark_of_another_owner_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leases.redb");
    let file = LeaseFile::open(&path).unwrap();
    let other = Lease { mac: OTHER, reserved: true, ..lease(1, LeaseState::Bound) };
    file.commit(&[Change::Put(other)]).unwrap();
    let value = super::write(&lease(1, LeaseState::Bound)).unwrap();
    let txn = file.database.begin_write().unwrap();
    txn.open_table(LEASES).unwrap().insert([10, 0, 0, 1].as_slice(), value.as_slice()).unwrap();
    txn.commit().unwrap();
    assert_eq!(file.load().unwrap(), [lease(1, LeaseState::Bound)]);
}

#[test]
fn what_is_no_lease_file_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    std::fs::write(&path, "lease 10.0.0.1 { }\n".repeat(1000)).unwrap();
    assert!(refused(&path).starts_with("cannot open the DHCP leases: "), "{}", refused(&path));
    let format: (&[u8], &[u8]) = (FORMAT_KEY, &[0, 1]);
    for (name, rows, sentence) in [
        ("newer", vec![(FORMAT_KEY, &[0, 2][..])], "has the format 2; this release knows formats"),
        ("none", vec![(FORMAT_KEY, &[1][..])], "is damaged: its format is not a number"),
        ("foreign", vec![(&b"abcd"[..], &b"e"[..])], "is damaged: its format is not a number"),
        ("key", vec![format, (b"abc", &[0; 23])], "is damaged: a key is not an address"),
        ("short", vec![format, (b"abcd", &[0; 22])], "is damaged: a lease has another length"),
        ("state", vec![format, (b"abcd", &[0; 23])], "is damaged: a lease has no known state"),
    ] {
        let path = folder.path().join(name);
        write(&path, &rows);
        assert!(refused(&path).contains(sentence), "{name}: {}", refused(&path));
    }
}

#[test]
fn a_file_cut_short_or_changed_on_disk_is_refused_or_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leases.redb");
    let leases: Vec<Lease> = (1..=250).map(|last| lease(last, LeaseState::Bound)).collect();
    let file = LeaseFile::open(&path).unwrap();
    file.commit(&leases.iter().copied().map(Change::Put).collect::<Vec<_>>()).unwrap();
    drop(file);
    let whole = std::fs::read(&path).unwrap();
    let broken = folder.path().join("broken");
    for at in (0..whole.len()).step_by(whole.len() / 64) {
        let mut bytes = whole.clone();
        for byte in &mut bytes[at..(at + 64).min(whole.len())] {
            *byte ^= 0x5a;
        }
        std::fs::write(&broken, bytes).unwrap();
        if let Ok(read) = LeaseFile::open(&broken).and_then(|file| file.load()) {
            assert_eq!(read, leases, "changed at {at}");
        }
        std::fs::write(&broken, &whole[..at]).unwrap();
        if at > 0 {
            refused(&broken);
        }
    }
}
