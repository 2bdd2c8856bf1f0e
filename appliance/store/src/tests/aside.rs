//! Updates and rollbacks to releases with other formats.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use redb::Database;

use super::seal::FORMAT_1;
use super::{block_on, key, options, write};
use crate::file::aside::{ASIDE_MAX, forget_copy, returned};
use crate::tables::{FORMAT, META, META_FORMAT, META_REVISION};
use crate::{Error, Store};

fn beside(path: &Path) -> Vec<String> {
    let names = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = names.map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

fn number(path: &Path, name: &str) -> u64 {
    let db = Database::open(path).unwrap();
    let txn = redb::ReadableDatabase::begin_read(&db).unwrap();
    let meta = txn.open_table(META).unwrap();
    meta.get(name).unwrap().unwrap().value()
}

/// Imitates an update to a later release: keeps a copy of the store, then writes a newer format.
fn taken_over(path: &Path, revision: u64) {
    crate::file::aside::keep(path, FORMAT).unwrap();
    let later = path.with_extension("later");
    std::fs::copy(path, &later).unwrap();
    let db = Database::open(&later).unwrap();
    let txn = db.begin_write().unwrap();
    {
        let mut meta = txn.open_table(META).unwrap();
        meta.insert(META_FORMAT, FORMAT + 1).unwrap();
        meta.insert(META_REVISION, revision).unwrap();
    }
    txn.commit().unwrap();
    drop(db);
    std::fs::rename(&later, path).unwrap();
}

fn stored(folder: &Path) -> PathBuf {
    let path = folder.join("objects.redb");
    let store = Store::open(&path, options()).unwrap();
    block_on(write(&store, |txn| txn.put(key("", "before"), b"1".to_vec()))).unwrap();
    path
}

#[test]
fn before_a_store_is_brought_forward_it_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("objects.redb");
    let old = zstd::decode_all(FORMAT_1).unwrap();
    std::fs::write(&path, &old).unwrap();
    // Left by a migration that was cut after its copy.
    std::fs::write(folder.path().join("objects.redb.format-1"), b"older").unwrap();
    drop(Store::open(&path, options()).unwrap());
    assert_eq!(beside(&path), ["objects.redb", "objects.redb.format-1"]);
    assert_eq!(number(&path, META_FORMAT), FORMAT);
    let copy = folder.path().join("objects.redb.format-1");
    assert_eq!((number(&copy, META_FORMAT), number(&copy, META_REVISION)), (1, 14));
    assert_ne!(copy.metadata().unwrap().ino(), path.metadata().unwrap().ino());
    assert_eq!(copy.metadata().unwrap().mode() & 0o777, 0o600);
    forget_copy(&path).unwrap();
    forget_copy(&path).unwrap();
    assert_eq!(beside(&path), ["objects.redb"]);
}

#[test]
fn the_release_before_gets_its_copy_back_and_what_came_since_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = stored(folder.path());
    taken_over(&path, 40);
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(store.revision(), 1);
    assert_eq!(*store.get(&key("", "before")).unwrap().unwrap().value, *b"1");
    store.check().unwrap();
    drop(store);
    assert_eq!(beside(&path), ["objects.redb", "objects.redb.newer-3-40"]);
    let aside = returned(&path).unwrap();
    assert_eq!((aside[0].format, aside[0].revision), (FORMAT + 1, Some(40)));
    assert_eq!(number(&aside[0].file, META_REVISION), 40);
    // Nothing more happens at the next start, and a second return keeps the first.
    let store = Store::open(&path, options()).unwrap();
    block_on(write(&store, |txn| txn.put(key("", "again"), b"2".to_vec()))).unwrap();
    drop(store);
    taken_over(&path, 50);
    assert_eq!(Store::open(&path, options()).unwrap().revision(), 2);
    let kept = || -> Vec<_> {
        returned(&path).unwrap().into_iter().filter_map(|it| it.revision).collect()
    };
    assert_eq!(kept(), [40, 50]);
    for revision in [60, 70, 80] {
        taken_over(&path, revision);
        drop(Store::open(&path, options()).unwrap());
    }
    assert_eq!(kept(), [60, 70, 80], "the oldest go");
    assert_eq!(kept().len(), ASIDE_MAX);
}

#[test]
fn a_return_that_was_cut_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = stored(folder.path());
    taken_over(&path, 40);
    std::fs::hard_link(&path, folder.path().join("objects.redb.newer-3-40")).unwrap();
    assert_eq!(Store::open(&path, options()).unwrap().revision(), 1);
    assert_eq!(returned(&path).unwrap().len(), 1);
}

#[test]
fn without_a_copy_a_later_store_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = stored(folder.path());
    taken_over(&path, 40);
    std::fs::remove_file(folder.path().join("objects.redb.format-2")).unwrap();
    let refused = Store::open(&path, options()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::FutureFormat { found: 3, known: 2, .. }), "{refused}");
    assert_eq!(number(&path, META_REVISION), 40);
}
