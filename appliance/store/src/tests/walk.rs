//! Walks from every key at every revision, compared with a model that kept every state.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::disk::{Disk, Seeded};
use super::{RESOURCE, block_on, key, options, start, write};
use crate::{Error, Key, Options, Store, Walk, WalkResult};

type State = BTreeMap<Key, Vec<u8>>;

/// Returns the objects of a walk that stops after `limit` objects, and its result.
fn seen(store: &Store, walk: Walk<'_>, limit: usize) -> (Vec<(Key, Vec<u8>)>, WalkResult) {
    let mut rows = Vec::new();
    let walked = store.walk(walk, |key, stored| {
        rows.push((key, stored.value.to_vec()));
        if rows.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (rows, walked.unwrap())
}

/// Makes one random change per write. Returns the state after each revision; the first is empty.
async fn churn(store: &Store, random: &mut Seeded, writes: u64) -> Vec<State> {
    let mut states = vec![State::new()];
    for number in 0..writes {
        let namespace = ["a", "b"][usize::from(random.below(2) == 0)];
        let at = key(namespace, &format!("n{}", random.below(6)));
        let mut state = states.last().unwrap().clone();
        let delete = random.below(3) == 0 && state.contains_key(&at);
        let value = number.to_string().into_bytes();
        if delete {
            state.remove(&at);
        } else {
            state.insert(at.clone(), value.clone());
        }
        states.push(state);
        write(store, move |txn| {
            if delete {
                txn.delete(&at).unwrap();
            } else {
                txn.put(at, value);
            }
        })
        .await
        .unwrap();
    }
    states
}

#[test]
fn any_revision_reads_as_it_was() {
    let store = start(&Disk::default(), options()).unwrap();
    block_on(async {
        let states = churn(&store, &mut Seeded::new(7), 120).await;
        for (revision, state) in states.iter().enumerate() {
            for namespace in [None, Some("a")] {
                let walk = Walk {
                    resource: RESOURCE,
                    namespace,
                    at: Some(revision as u64),
                    ..Walk::default()
                };
                let inside = |key: &Key| namespace.is_none_or(|one| one == key.namespace);
                let expected: Vec<_> = state
                    .iter()
                    .filter(|(key, _)| inside(key))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                let (rows, walked) = seen(&store, walk, usize::MAX);
                assert_eq!(rows, expected, "{revision} {namespace:?}");
                assert_eq!((walked.revision, walked.newest), (revision as u64, 120));
                // Pages of any size add up to the same.
                for limit in 1..4 {
                    let mut pages = Vec::new();
                    loop {
                        let last = pages.last().map(|(key, _): &(Key, _)| key.clone());
                        let (page, walked) =
                            seen(&store, Walk { after: last.as_ref(), ..walk }, limit);
                        let full = page.len() == limit;
                        pages.extend(page);
                        assert_eq!(walked.left, expected.len() - pages.len());
                        if !full {
                            break;
                        }
                    }
                    assert_eq!(pages, expected);
                }
            }
        }
    });
}

#[test]
fn what_the_log_has_lost_is_said() {
    let store = start(&Disk::default(), Options { log_entries: 10, ..options() }).unwrap();
    block_on(async {
        churn(&store, &mut Seeded::new(1), 30).await;
        let at = |revision| Walk { resource: RESOURCE, at: Some(revision), ..Walk::default() };
        let read = |walk| store.walk(walk, |_, _| ControlFlow::Continue(()));
        assert!(matches!(read(at(31)), Err(Error::Future { after: 31, current: 30 })));
        assert!(matches!(read(at(5)), Err(Error::Compacted { after: 5, .. })));
        assert!(read(at(20)).is_ok());
    });
}
