//! The writer thread: groups, failed closures, panics, limits.

use std::sync::mpsc;
use std::time::Instant;

use futures_util::future::join_all;

use super::disk::Disk;
use super::{PATIENCE, block_on, key, options, start, value, write};
use crate::{ChangeKind, Error, MAX_TXN_BYTES, MAX_VALUE_BYTES, Stored};

#[test]
fn writers_that_come_meanwhile_share_one_commit() {
    let disk = Disk::default();
    let store = start(&disk, options()).unwrap();
    let (release, held) = mpsc::sync_channel::<()>(1);
    let (begin, begun) = mpsc::sync_channel::<()>(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let first = runtime.spawn({
        let store = store.clone();
        async move {
            write(&store, move |txn| {
                begin.send(()).unwrap();
                held.recv().unwrap();
                txn.put(key("", "first"), Vec::new())
            })
            .await
        }
    });
    let waiting = |count: usize| {
        let deadline = Instant::now() + PATIENCE;
        while store.stats().waiting < count {
            assert!(Instant::now() < deadline, "the writes never arrived");
            std::thread::yield_now();
        }
    };
    begun.recv_timeout(PATIENCE).unwrap();
    let others = (0..20).map(|number| {
        let store = store.clone();
        runtime.spawn(async move {
            write(&store, move |txn| txn.put(key("", &format!("{number}")), Vec::new())).await
        })
    });
    let others: Vec<_> = others.collect();
    waiting(21);
    let before = disk.syncs();
    release.send(()).unwrap();
    let revisions = runtime.block_on(async {
        assert_eq!(first.await.unwrap().unwrap(), 1);
        join_all(others).await
    });
    let mut revisions: Vec<_> = revisions.into_iter().map(|one| one.unwrap().unwrap()).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (2..=21).collect::<Vec<_>>());
    let stats = store.stats();
    assert_eq!((stats.commits, stats.writes, stats.waiting), (2, 21, 0));
    let syncs = disk.syncs() - before;
    assert!((2..=6).contains(&syncs), "two commits in two phases took {syncs} syncs");
}

#[test]
fn a_closure_that_refuses_or_panics_leaves_nothing_behind() {
    let store = start(&Disk::default(), options()).unwrap();
    block_on(async {
        let refused = store
            .write(|txn| {
                txn.put(key("", "a"), b"1".to_vec());
                Err::<(), _>("conflict")
            })
            .await;
        assert_eq!(refused.unwrap(), Err("conflict"));
        let panicked = write(&store, |txn| {
            txn.put(key("", "a"), b"2".to_vec());
            panic!("in a test");
        })
        .await;
        match panicked {
            Err(Error::Panicked { message }) => assert_eq!(message, "in a test"),
            other => panic!("{other:?}"),
        }
        assert_eq!(store.get(&key("", "a")).unwrap(), None);
        assert_eq!(store.revision(), 0);
        assert_eq!(write(&store, |txn| txn.put(key("", "a"), b"3".to_vec())).await.unwrap(), 1);
    });
    assert_eq!(store.stats().commits, 1, "what changes nothing commits nothing");
}

#[test]
fn what_is_too_large_is_refused_whole() {
    let store = start(&Disk::default(), options()).unwrap();
    block_on(async {
        let value = write(&store, |txn| {
            txn.put(key("", "kept?"), Vec::new());
            txn.put(key("", "large"), vec![0; MAX_VALUE_BYTES + 1])
        });
        assert!(matches!(value.await, Err(Error::ValueTooLarge { .. })));
        let name = write(&store, |txn| txn.put(key("", &"n".repeat(5000)), Vec::new()));
        assert!(matches!(name.await, Err(Error::ValueTooLarge { .. })));
        let together = write(&store, |txn| {
            for number in 0..=MAX_TXN_BYTES / MAX_VALUE_BYTES {
                txn.put(key("", &format!("{number}")), vec![0; MAX_VALUE_BYTES]);
            }
        });
        assert!(matches!(together.await, Err(Error::TxnTooLarge { .. })));
    });
    assert_eq!(store.revision(), 0);
    assert_eq!(store.list(super::RESOURCE, None).unwrap().1, []);
}

#[test]
fn a_closure_sees_its_own_changes_and_those_before_it() {
    let store = start(&Disk::default(), options()).unwrap();
    block_on(write(&store, |txn| {
        txn.put(key("n", "b"), b"old".to_vec());
        txn.put(key("n", "d"), b"old".to_vec());
        txn.put(key("m", "z"), b"old".to_vec());
    }))
    .unwrap();
    block_on(write(&store, |txn| {
        assert_eq!(txn.put(key("n", "c"), b"new".to_vec()), 4);
        assert_eq!(txn.put(key("n", "b"), b"new".to_vec()), 5);
        assert_eq!(txn.delete(&key("n", "d")).unwrap(), Some(6));
        assert_eq!(txn.delete(&key("n", "d")).unwrap(), None);
        assert_eq!(txn.put(key("n", "c"), b"newer".to_vec()), 7);
        let names = |rows: Vec<(crate::Key, Stored)>| {
            rows.into_iter().map(|(key, row)| (key.name, row.revision)).collect::<Vec<_>>()
        };
        let here = names(txn.list(super::RESOURCE, Some("n")).unwrap());
        assert_eq!(here, [("b".to_owned(), 5), ("c".to_owned(), 7)]);
        let all = names(txn.list(super::RESOURCE, None).unwrap());
        assert_eq!(all, [("z".to_owned(), 3), ("b".to_owned(), 5), ("c".to_owned(), 7)]);
        assert_eq!(txn.list("tinkerbell.org/hard", None).unwrap(), []);
    }))
    .unwrap();
    let mut watch = store.watch(super::RESOURCE, None, 6).unwrap();
    let change = block_on(super::take(&mut watch, 1)).remove(0);
    let previous = Some(Stored { revision: 4, value: value("new") });
    assert_eq!(change.kind, ChangeKind::Put { value: value("newer"), previous });
}

#[test]
fn the_last_handle_may_go_with_a_write() {
    let store = start(&Disk::default(), options()).unwrap();
    let mut watch = store.watch(super::RESOURCE, None, 0).unwrap();
    let inside = store.clone();
    let mut write = Box::pin(async move {
        let handle = store;
        let held = handle.clone();
        let outcome = write(&handle, move |txn| {
            drop(held);
            txn.put(key("", "a"), Vec::new())
        });
        outcome.await
    });
    block_on(async {
        // Polled once, so that it is queued; then every handle is dropped.
        let polled = futures_util::future::poll_immediate(&mut write).await;
        drop((write, inside, polled));
        assert_eq!(watch.next().await.unwrap().revision, 1);
        assert!(matches!(watch.next().await, Err(Error::Closed)));
    });
}

#[test]
fn a_store_that_takes_no_writes_is_found_out_though_nothing_changes() {
    let disk = Disk::default();
    let store = start(&disk, options()).unwrap();
    block_on(async {
        write(&store, |txn| txn.put(key("", "a"), Vec::new())).await.unwrap();
        let (syncs, revision) = (disk.syncs(), store.revision());
        write(&store, |_| ()).await.unwrap();
        assert_eq!(disk.syncs(), syncs, "nothing to write");
        store.touch().await.unwrap();
        assert!(disk.syncs() > syncs);
        assert_eq!(store.revision(), revision);
        disk.allow(Some(0));
        assert!(store.touch().await.is_err());
    });
}
