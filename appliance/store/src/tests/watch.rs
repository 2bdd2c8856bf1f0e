//! Watches: from every revision, late, slow, closed, and with aged changes.

use std::time::Duration;

use futures_util::StreamExt as _;
use stdx::TestClock;

use super::disk::Disk;
use super::{RESOURCE, block_on, key, options, start, take, write};
use crate::{ChangeKind, Error, Key, Options, Store};

/// Makes the changes 1 to `count`: to five objects in two namespaces, and one of another resource.
async fn fill(store: &Store, count: u64) {
    write(store, move |txn| {
        for number in 1..=count {
            let key = match number % 6 {
                5 => Key::new("/secrets", "default", "other"),
                slot => key(["default", "edge"][number as usize % 2], &format!("{slot}")),
            };
            txn.put(key, number.to_string().into_bytes());
        }
    })
    .await
    .unwrap();
}

fn expected(after: u64, count: u64) -> Vec<u64> {
    (after + 1..=count).filter(|number| number % 6 != 5).collect()
}

#[test]
fn from_every_revision_exactly_what_followed() {
    const COUNT: u64 = 3000;
    let disk = Disk::default();
    for reopened in [false, true] {
        let store = start(&disk, options()).unwrap();
        block_on(async {
            if !reopened {
                // Three commits, so that the ring in memory holds only the last third.
                for part in 1..=3 {
                    let done = store.revision();
                    fill_from(&store, done, COUNT / 3 * part).await;
                }
            }
            for after in (0..=COUNT).step_by(97).chain(COUNT - 3..=COUNT) {
                let expected = expected(after, COUNT);
                let mut watch = store.watch(RESOURCE, None, after).unwrap();
                let changes = take(&mut watch, expected.len()).await;
                let revisions: Vec<_> = changes.iter().map(|change| change.revision).collect();
                assert_eq!(revisions, expected, "after {after}");
                for change in changes {
                    let ChangeKind::Put { value, .. } = &change.kind else { panic!() };
                    assert_eq!(**value, *change.revision.to_string().as_bytes());
                }
            }
        });
    }
}

async fn fill_from(store: &Store, from: u64, to: u64) {
    write(store, move |txn| {
        for number in from + 1..=to {
            let key = match number % 6 {
                5 => Key::new("/secrets", "default", "other"),
                slot => key(["default", "edge"][number as usize % 2], &format!("{slot}")),
            };
            txn.put(key, number.to_string().into_bytes());
        }
    })
    .await
    .unwrap();
}

#[test]
fn a_namespace_sees_only_its_own_and_may_say_how_far_it_came() {
    let store = start(&Disk::default(), options()).unwrap();
    block_on(async {
        let mut watch = store.watch(RESOURCE, Some("edge"), 0).unwrap();
        fill(&store, 12).await;
        let changes = take(&mut watch, 4).await;
        assert!(changes.iter().all(|change| change.key.namespace == "edge"));
        let revisions: Vec<_> = changes.iter().map(|change| change.revision).collect();
        assert_eq!(revisions, [1, 3, 7, 9]);
        assert!(futures_util::future::poll_immediate(watch.next()).await.is_none());
        assert_eq!(watch.revision(), 12, "a bookmark covers what was not wanted");
    });
}

#[test]
fn a_slow_watch_is_cut_and_holds_up_nobody() {
    let store = start(&Disk::default(), Options { log_entries: 1500, ..options() }).unwrap();
    block_on(async {
        let mut slow = store.watch(RESOURCE, None, 0).unwrap();
        let mut late = store.watch(RESOURCE, None, 0).unwrap();
        fill(&store, 1400).await;
        // Past the ring, still in the log.
        assert_eq!(take(&mut late, 600).await.len(), 600);
        fill_from(&store, 1400, 4000).await;
        match slow.next().await {
            Err(Error::Lagged { at: 0, floor: 2500 }) => {}
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            store.watch(RESOURCE, None, 2499),
            Err(Error::Compacted { after: 2499, floor: 2500 })
        ));
        assert!(store.watch(RESOURCE, None, 2500).is_ok());
        assert!(matches!(
            store.watch(RESOURCE, None, 4001),
            Err(Error::Future { after: 4001, current: 4000 })
        ));
        store.check().unwrap();
    });
}

#[test]
fn a_watch_wakes_for_what_comes_and_ends_with_the_store() {
    let store = start(&Disk::default(), options()).unwrap();
    block_on(async {
        let (revision, rows) = store.list(RESOURCE, None).unwrap();
        assert_eq!((revision, rows.len()), (0, 0));
        let watch = store.watch(RESOURCE, None, revision).unwrap();
        assert_eq!(store.stats().watches, 1);
        let reader = tokio::spawn(watch.into_stream().collect::<Vec<_>>());
        for name in ["a", "b"] {
            write(&store, move |txn| txn.put(key("", name), Vec::new())).await.unwrap();
            tokio::task::yield_now().await;
        }
        let gone = write(&store, |txn| txn.delete(&key("", "a"))).await.unwrap();
        assert_eq!(gone.unwrap(), Some(3));
        drop(store);
        let seen = reader.await.unwrap();
        let seen: Vec<_> = seen.into_iter().map(|one| one.map(|change| change.revision)).collect();
        assert!(matches!(seen[..], [Ok(1), Ok(2), Ok(3), Err(Error::Closed)]), "{seen:?}");
    });
}

#[test]
fn what_has_aged_leaves_the_log() {
    let clock = TestClock::at("2026-01-01T00:00:00Z".parse().unwrap());
    let hour = Duration::from_secs(3600);
    let options =
        || Options { log_age: hour, clock: std::sync::Arc::new(clock.clone()), ..options() };
    let disk = Disk::default();
    let store = start(&disk, options()).unwrap();
    block_on(async {
        fill(&store, 10).await;
        assert_eq!(store.compact().await.unwrap(), 0);
        clock.advance((hour / 2).try_into().unwrap());
        fill_from(&store, 10, 20).await;
        clock.advance((hour / 2 + Duration::from_secs(1)).try_into().unwrap());
        assert_eq!(store.compact().await.unwrap(), 10);
        assert!(matches!(store.watch(RESOURCE, None, 9), Err(Error::Compacted { .. })));
        let mut watch = store.watch(RESOURCE, None, 10).unwrap();
        assert_eq!(take(&mut watch, 1).await[0].revision, 12);
        assert_eq!(store.check().unwrap().floor, 10);
        clock.advance(hour.try_into().unwrap());
        assert_eq!(store.compact().await.unwrap(), 20);
    });
    drop(store);
    let store = start(&disk, options()).unwrap();
    assert_eq!(store.revision(), 20, "an empty log does not take the revision back");
    assert_eq!(block_on(write(&store, |txn| txn.put(key("", "x"), Vec::new()))).unwrap(), 21);
    store.check().unwrap();
}

#[test]
fn a_wall_clock_that_is_set_trims_no_log() {
    let clock = TestClock::at("2025-01-01T00:00:00Z".parse().unwrap());
    let hour = Duration::from_secs(3600);
    let options =
        || Options { log_age: hour, clock: std::sync::Arc::new(clock.clone()), ..options() };
    let disk = Disk::default();
    let store = start(&disk, options()).unwrap();
    block_on(async {
        fill(&store, 10).await;
        for years in [1, 2] {
            clock.set((hour * 8760 * years).try_into().unwrap());
            assert_eq!(store.compact().await.unwrap(), 0);
            let mut watch = store.watch(RESOURCE, None, 1).unwrap();
            assert_eq!(take(&mut watch, 1).await[0].revision, 2, "a watch that lags goes on");
        }
    });
    drop(store);
    // The age of rows from an earlier process counts from the start of this process.
    let store = start(&disk, options()).unwrap();
    block_on(async {
        clock.set((hour * 8760).try_into().unwrap());
        assert_eq!(store.compact().await.unwrap(), 0);
        clock.advance((hour + Duration::from_secs(1)).try_into().unwrap());
        assert_eq!(store.compact().await.unwrap(), 10);
    });
}

#[test]
fn the_log_keeps_to_its_bytes() {
    let store = start(&Disk::default(), Options { log_bytes: 10_000, ..options() }).unwrap();
    block_on(async {
        for _ in 0..20 {
            write(&store, |txn| txn.put(key("", "x"), vec![7; 1000])).await.unwrap();
        }
    });
    let checked = store.check().unwrap();
    assert_eq!((checked.revision, checked.objects), (20, 1));
    assert_eq!(checked.floor, 16, "four rows of some 2,060 bytes fit");
}
