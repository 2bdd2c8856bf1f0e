//! Power cuts at random times: no acknowledged write is lost, and log and objects agree.

use std::collections::HashMap;

use futures_util::future::join_all;

use super::disk::{Disk, Seeded};
use super::{block_on, key, options, start, value, write};
use crate::{Error, Options, Store, Stored};

/// Default seed; overridden by `STORE_SEED`.
const SEED: u64 = 1;
const ROUNDS: u64 = 150;
const WRITERS: u64 = 4;
const WRITES: u64 = 12;

/// Last acknowledged state of each object.
#[derive(Default)]
struct Acknowledged(HashMap<String, (u64, Option<Stored>)>);

impl Acknowledged {
    fn note(&mut self, name: String, revision: u64, state: Option<Stored>) {
        self.0.insert(name, (revision, state));
    }

    /// Checks that `store` has each acknowledged state, or a later state that was never
    /// acknowledged. A later state counts as acknowledged from then on.
    fn verify(&mut self, store: &Store, context: &str) {
        store.check().unwrap_or_else(|error| panic!("{context}: {error}"));
        for (name, (revision, state)) in &mut self.0 {
            assert!(store.revision() >= *revision, "{context}: revision {revision} is lost");
            let found = store.get(&key("default", name)).unwrap();
            if found == *state {
                continue;
            }
            let later = match &found {
                Some(found) => Some(found.revision),
                None => deleted_after(store, name, *revision),
            };
            assert!(
                later.is_some_and(|later| later > *revision),
                "{context}: {name} was acknowledged as {state:?}, found {found:?}"
            );
            *revision = later.unwrap_or(*revision);
            *state = found;
        }
    }
}

/// Returns the revision at which the object was deleted after `revision`, according to the log;
/// `None` if it was not.
fn deleted_after(store: &Store, name: &str, revision: u64) -> Option<u64> {
    let mut watch = store.watch(super::RESOURCE, Some("default"), revision).unwrap();
    let current = store.revision();
    block_on(async {
        let mut deleted = None;
        while watch.revision() < current {
            // The last changes may be of other objects: then there is no next one to wait for.
            let Some(next) = futures_util::future::poll_immediate(watch.next()).await else {
                continue;
            };
            let change = next.unwrap();
            if change.key.name == name {
                deleted = change.current().is_none().then_some(change.revision);
            }
        }
        deleted
    })
}

/// Writes from several tasks until the disk fails or all writes are done.
fn work(store: &Store, round: u64, acknowledged: &mut Acknowledged) {
    let writer = |task: u64| async move {
        let mut noted = Vec::new();
        for number in 0..WRITES {
            let name = format!("object-{task}-{}", number % 5);
            let text = format!("{round}/{task}/{number} {}", "x".repeat(700));
            let stored = value(&text);
            let delete = number % 4 == 3;
            let object = key("default", &name);
            let outcome = write(store, move |txn| match delete {
                true => txn.delete(&object),
                false => Ok(Some(txn.put(object, text.into_bytes()))),
            });
            match outcome.await {
                Ok(Ok(Some(revision))) => {
                    let state = Stored { revision, value: stored };
                    noted.push((name, revision, (!delete).then_some(state)));
                }
                Ok(Ok(None)) => {}
                Ok(Err(_)) | Err(_) => break,
            }
        }
        noted
    };
    for noted in block_on(join_all((0..WRITERS).map(writer))) {
        for (name, revision, state) in noted {
            acknowledged.note(name, revision, state);
        }
    }
}

/// Options with a short log, so that power is also cut while the log is trimmed.
fn short_log() -> Options {
    Options { log_entries: 60, ..options() }
}

#[test]
fn nothing_acknowledged_is_lost_to_a_power_cut() {
    let seed = std::env::var("STORE_SEED").map_or(SEED, |seed| seed.parse().unwrap());
    println!("STORE_SEED={seed}");
    let mut random = Seeded::new(seed);
    let mut disk = Disk::default();
    drop(start(&disk, short_log()).unwrap());
    let mut acknowledged = Acknowledged::default();
    let mut highest = 0;
    for round in 0..ROUNDS {
        let context = format!("STORE_SEED={seed}, round {round}");
        if let Ok(store) = start(&disk, short_log()) {
            assert!(store.revision() >= highest, "{context}: revisions went back");
            disk.allow(Some(1 + random.below(400)));
            work(&store, round, &mut acknowledged);
        }
        disk = disk.cut(&mut random);
        // The power goes again while the first cut is being repaired.
        disk.allow(Some(random.below(60)));
        drop(start(&disk, short_log()));
        disk = disk.cut(&mut random);
        let store = start(&disk, short_log()).unwrap_or_else(|error| panic!("{context}: {error}"));
        acknowledged.verify(&store, &context);
        highest = store.revision();
    }
    assert!(highest > ROUNDS * 5, "the disk failed too early to prove anything: {highest}");
}

#[test]
fn a_full_disk_stops_writing_with_a_clear_message_and_loses_nothing() {
    let disk = Disk::default();
    let store = start(&disk, options()).unwrap();
    let put = |name: &'static str| {
        let store = store.clone();
        async move { write(&store, move |txn| txn.put(key("", name), b"1".to_vec())).await }
    };
    block_on(async {
        put("before").await.unwrap();
        assert!(store.stopped().is_none());
        disk.allow(Some(1));
        assert!(matches!(put("lost").await, Err(Error::Storage { .. })));
        disk.allow(None);
        store.until_stopped().await;
        let refused = put("refused").await.unwrap_err();
        assert!(matches!(refused, Error::Refusing { .. }), "{refused}");
        assert!(stdx::chain(&refused).contains("open it again"), "{}", stdx::chain(&refused));
    });
    drop(store);
    let store = start(&disk, options()).unwrap();
    store.check().unwrap();
    assert!(store.get(&key("", "before")).unwrap().is_some());
    assert!(store.get(&key("", "refused")).unwrap().is_none());
    block_on(write(&store, |txn| txn.put(key("", "after"), b"1".to_vec()))).unwrap();
}

#[test]
fn a_disk_that_changes_bytes_is_an_error_not_a_panic() {
    let disk = Disk::default();
    let store = start(&disk, options()).unwrap();
    work(&store, 0, &mut Acknowledged::default());
    drop(store);
    let mut random = Seeded::new(SEED);
    let mut refused = 0;
    for _ in 0..2000 {
        let outcome = start(&disk.flipped(&mut random), options()).and_then(|store| {
            store.check()?;
            store.list(super::RESOURCE, None)
        });
        refused += u32::from(outcome.is_err());
    }
    assert!(refused > 0, "no flipped byte mattered: nothing was proved");
}
