//! Opening of real files.

use std::os::unix::fs::PermissionsExt as _;

use redb::{Database, StorageBackend as _};

use super::disk::{Disk, Seeded};
use super::{block_on, key, options, start, write};
use crate::file::open::was_left_open;
use crate::tables::{FORMAT, META, META_FORMAT, META_REVISION};
use crate::{Error, Store};

#[test]
fn a_new_store_is_private_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    std::fs::write(folder.path().join("store.redb.new"), b"left by a power cut").unwrap();
    let store = Store::open(&path, options()).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(matches!(Store::open(&path, options()), Err(Error::InUse { .. })));
    block_on(write(&store, |txn| txn.put(key("", "a"), b"1".to_vec()))).unwrap();
    drop(store);
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(store.revision(), 1);
    assert_eq!(*store.get(&key("", "a")).unwrap().unwrap().value, *b"1");
}

#[test]
fn only_a_store_that_a_crash_left_open_is_said_to_be_repaired() {
    let left_open = |disk: &Disk| was_left_open(disk, disk.len().unwrap()).unwrap();
    let disk = Disk::default();
    assert!(!left_open(&disk), "there is none yet");
    let store = start(&disk, options()).unwrap();
    block_on(write(&store, |txn| txn.put(key("", "a"), b"1".to_vec()))).unwrap();
    let crashed = disk.cut(&mut Seeded::new(1));
    drop(store);
    assert!(!left_open(&disk), "it was closed");
    assert!(left_open(&crashed));
    drop(start(&crashed, options()).unwrap());
    assert!(!left_open(&crashed), "it was repaired, and closed");
}

#[test]
fn a_later_format_is_refused_with_both_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    drop(Store::open(&path, options()).unwrap());
    set(&path, META_FORMAT, FORMAT + 1);
    let refused = Store::open(&path, options()).map(|_| ()).unwrap_err();
    let path = path.display();
    assert_eq!(
        refused.to_string(),
        format!(
            "cannot open the store {path}: it has format 3, this release supports formats up to 2"
        )
    );
}

#[test]
fn a_store_that_contradicts_itself_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = Store::open(&path, options()).unwrap();
    block_on(write(&store, |txn| txn.put(key("", "a"), b"1".to_vec()))).unwrap();
    drop(store);
    set(&path, META_REVISION, 0);
    assert!(matches!(Store::open(&path, options()), Err(Error::Damaged { .. })));
}

#[test]
fn what_is_no_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    std::fs::write(&path, vec![0x55; 8192]).unwrap();
    let refused = Store::open(&path, options()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Storage { .. }), "{refused}");
    let missing = folder.path().join("no/such/folder/store.redb");
    let refused = Store::open(&missing, options()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::File { .. }), "{refused}");
}

fn set(path: &std::path::Path, name: &str, value: u64) {
    let db = Database::open(path).unwrap();
    let txn = db.begin_write().unwrap();
    txn.open_table(META).unwrap().insert(name, value).unwrap();
    txn.commit().unwrap();
}
