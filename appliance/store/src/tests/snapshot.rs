//! Snapshots of a running store, and their restore.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::future::join_all;

use super::{block_on, key, options, write};
use crate::{Error, RESTORE_LEAP, SealingKey, Store};

#[test]
fn a_snapshot_under_load_is_a_whole_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.redb"), options()).unwrap();
    let copy = folder.path().join("copy.redb");
    let done = Arc::new(AtomicBool::new(false));
    let taking = std::thread::spawn({
        let (store, copy, done) = (store.clone(), copy.clone(), done.clone());
        move || {
            let revisions: Vec<u64> = (0..5).map(|_| store.snapshot(&copy).unwrap()).collect();
            done.store(true, Relaxed);
            revisions
        }
    });
    let writer = |task: u64| {
        let (store, done) = (store.clone(), done.clone());
        async move {
            let mut number = 0;
            while number < 50 || !done.load(Relaxed) {
                let name = format!("{task}-{}", number % 40);
                let text = format!("{number} {}", "x".repeat(500));
                write(&store, move |txn| txn.put(key("d", &name), text.into_bytes()))
                    .await
                    .unwrap();
                number += 1;
            }
        }
    };
    block_on(join_all((0..4).map(writer)));
    let revisions = taking.join().unwrap();
    let copy = Store::open(&copy, options()).unwrap();
    assert_eq!(copy.check().unwrap().revision, *revisions.last().unwrap());
    assert!(store.revision() > copy.revision(), "nothing was written meanwhile");
}

#[test]
fn restoring_brings_back_what_was_and_tells_watches_to_list_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let copy = folder.path().join("copy.redb");
    let store = Store::open(&path, options()).unwrap();
    let put = |name: &'static str, text: &'static str| {
        write(&store, move |txn| txn.put(key("d", name), text.into()))
    };
    block_on(async {
        put("kept", "same").await.unwrap();
        put("changed", "before").await.unwrap();
        put("deleted", "was here").await.unwrap();
        let taken = store.snapshot(&copy).unwrap();
        put("changed", "after").await.unwrap();
        put("added", "later").await.unwrap();
        write(&store, |txn| txn.delete(&key("d", "deleted"))).await.unwrap().unwrap();
        let mut watch = store.watch(super::RESOURCE, None, store.revision()).unwrap();

        let restored = store.restore(&copy).await.unwrap();
        assert!(restored > taken + RESTORE_LEAP);
        assert!(matches!(watch.next().await, Err(Error::Lagged { .. })));
        let (revision, objects) = store.list(super::RESOURCE, None).unwrap();
        let texts: Vec<_> = objects
            .iter()
            .map(|(key, stored)| (key.name.as_str(), std::str::from_utf8(&stored.value).unwrap()))
            .collect();
        assert_eq!(texts, [("changed", "before"), ("deleted", "was here"), ("kept", "same")]);
        store.check().unwrap();

        let mut watch = store.watch(super::RESOURCE, None, revision).unwrap();
        put("kept", "new").await.unwrap();
        assert_eq!(watch.next().await.unwrap().revision, revision + 1);
    });
    drop(store);
    Store::open(&path, options()).unwrap().check().unwrap();
}

#[test]
fn a_snapshot_goes_to_an_empty_box_and_revisions_never_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let old = Store::open(&folder.path().join("old.redb"), options()).unwrap();
    let copy = folder.path().join("copy.redb");
    let new = Store::open(&folder.path().join("new.redb"), options()).unwrap();
    block_on(async {
        write(&old, |txn| txn.put(key("d", "a"), b"1".to_vec())).await.unwrap();
        old.snapshot(&copy).unwrap();
        let lost = write(&old, |txn| txn.put(key("d", "b"), b"1".to_vec())).await.unwrap();
        let restored = new.restore(&copy).await.unwrap();
        assert!(restored > lost);
        assert!(new.get(&key("d", "a")).unwrap().is_some());
    });
}

#[test]
fn what_is_no_snapshot_of_ours_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = Store::open(&path, options()).unwrap();
    let junk = folder.path().join("junk");
    std::fs::write(&junk, vec![0x55; 4096]).unwrap();
    let sealed = folder.path().join("sealed.redb");
    let key_of_another = Some(SealingKey::new(&[9; 32]));
    let other = crate::Options { sealing_key: key_of_another, ..options() };
    drop(Store::open(&sealed, other).unwrap());
    block_on(async {
        write(&store, |txn| txn.put(key("d", "a"), b"1".to_vec())).await.unwrap();
        assert!(matches!(store.restore(&junk).await, Err(Error::Storage { .. })));
        assert!(matches!(store.restore(&sealed).await, Err(Error::WrongKey { .. })));
        let none = store.restore(&folder.path().join("none")).await;
        assert!(matches!(none, Err(Error::File { .. })), "{none:?}");
        // An empty file would be taken for a new store, and everything here deleted.
        std::fs::write(&junk, b"").unwrap();
        let empty = store.restore(&junk).await;
        assert!(matches!(empty, Err(Error::Damaged { .. })), "{empty:?}");
    });
    assert_eq!(store.revision(), 1);
    store.check().unwrap();
}
