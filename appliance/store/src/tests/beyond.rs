//! `Txn::beyond` must return the same keys as a complete, sorted list.

use super::disk::Disk;
use super::{RESOURCE, block_on, key, options, start, write};
use crate::{Key, Txn};

/// Returns the expected result of `beyond`, from a complete list.
fn by_the_list(txn: &Txn<'_>, keep: usize) -> Vec<Key> {
    let mut all = txn.list(RESOURCE, Some("a")).unwrap();
    all.sort_by_key(|(_, stored)| stored.revision);
    let excess = all.len().saturating_sub(keep);
    all.into_iter().take(excess).map(|(key, _)| key).collect()
}

#[test]
fn the_oldest_lie_beyond_also_within_a_write() {
    let store = start(&Disk::default(), options()).unwrap();
    block_on(write(&store, |txn| {
        // Names are not in order; `b` and `another` must not affect the result.
        for name in ["m", "c", "x", "a", "q", "é"] {
            txn.put(key("a", name), Vec::new());
            txn.put(key("b", name), Vec::new());
            txn.put(Key::new("another", "a", name), Vec::new());
        }
    }))
    .unwrap();
    block_on(write(&store, |txn| {
        let check = |txn: &Txn<'_>| {
            for keep in 0..9 {
                let beyond = txn.beyond(RESOURCE, "a", keep, |name| name).unwrap();
                assert_eq!(beyond, by_the_list(txn, keep), "all but {keep}");
            }
        };
        check(txn);
        assert_eq!(
            txn.beyond(RESOURCE, "a", 4, |name| name).unwrap(),
            [key("a", "m"), key("a", "c")]
        );
        txn.put(key("a", "m"), Vec::new());
        txn.put(key("a", "n"), Vec::new());
        txn.delete(&key("a", "a")).unwrap();
        check(txn);
        assert_eq!(
            txn.beyond(RESOURCE, "a", 4, |name| name).unwrap(),
            [key("a", "c"), key("a", "x")]
        );
    }))
    .unwrap();
    block_on(write(&store, |txn| {
        assert!(txn.beyond(RESOURCE, "c", 0, |name| name).unwrap().is_empty())
    }))
    .unwrap();
}

#[test]
fn a_subject_with_most_objects_pushes_out_its_own() {
    let store = start(&Disk::default(), options()).unwrap();
    block_on(write(&store, |txn| {
        for name in ["quiet.1", "noisy.1", "other.1", "noisy.2", "noisy.3", "other.2"] {
            txn.put(key("a", name), Vec::new());
        }
        let beyond = |keep| {
            let keys = txn.beyond(RESOURCE, "a", keep, |name| &name[..5]).unwrap();
            keys.into_iter().map(|key| key.name).collect::<Vec<_>>()
        };
        assert_eq!(beyond(5), ["noisy.1"]);
        assert_eq!(beyond(3), ["noisy.1", "other.1", "noisy.2"]);
        assert_eq!(beyond(2), ["noisy.1", "other.1", "noisy.2", "quiet.1"]);
    }))
    .unwrap();
}
