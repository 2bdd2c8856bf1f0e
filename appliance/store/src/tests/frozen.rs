//! A frozen state of a store: read while writes continue, and imported into another store.

use std::ops::ControlFlow;

use super::{block_on, key, options, write};
use crate::{Frozen, Key, RESTORE_LEAP, SealingKey, Store};

fn all(frozen: &Frozen) -> Vec<(Key, Vec<u8>)> {
    let mut objects = Vec::new();
    let visit = |key, stored: crate::Stored| {
        objects.push((key, stored.value.to_vec()));
        ControlFlow::Continue(())
    };
    frozen.each(visit).unwrap();
    objects
}

#[test]
fn a_moment_stays_as_it_was_and_another_store_takes_it_under_its_own_key() {
    let folder = tempfile::tempdir().unwrap();
    let old = Store::open(&folder.path().join("old.redb"), options()).unwrap();
    let sealing_key = Some(SealingKey::new(&[9; 32]));
    let path = folder.path().join("new.redb");
    let sealed = crate::Options { sealing_key, ..options() };
    let new = Store::open(&path, sealed.clone()).unwrap();
    block_on(async {
        for (name, text) in [("a", "1"), ("b", "2"), ("c", "3")] {
            write(&old, move |txn| txn.put(key("d", name), text.into())).await.unwrap();
        }
        let frozen = old.freeze().unwrap();
        write(&old, |txn| txn.put(key("d", "a"), b"later".to_vec())).await.unwrap();
        write(&old, |txn| txn.delete(&key("d", "b"))).await.unwrap().unwrap();
        let objects = all(&frozen);
        let values: Vec<&[u8]> = objects.iter().map(|(_, value)| value.as_slice()).collect();
        assert_eq!((values, frozen.revision()), (vec![&b"1"[..], b"2", b"3"], 3));

        let mut batches = objects.clone();
        let rest = batches.split_off(1);
        new.adopt(frozen.revision(), batches).await.unwrap();
        new.adopt(frozen.revision(), rest).await.unwrap();
        assert_eq!(all(&new.freeze().unwrap()), objects);
        assert_eq!(new.revision(), 3 + RESTORE_LEAP + 3, "one leap, then one each");
        assert!(new.revision() > old.revision());
    });
    drop(new);
    Store::open(&path, sealed).unwrap().check().unwrap();
}

#[test]
fn reading_ends_where_the_reader_wants() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.redb"), options()).unwrap();
    block_on(async {
        for name in ["a", "b"] {
            write(&store, move |txn| txn.put(key("d", name), Vec::new())).await.unwrap();
        }
    });
    let mut seen = Vec::new();
    let visit = |key: Key, _| {
        seen.push(key.name);
        ControlFlow::Break(())
    };
    store.freeze().unwrap().each(visit).unwrap();
    assert_eq!(seen, ["a"]);
}
