//! Comparison of the store with a model: a map of objects and a list of changes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::disk::Disk;
use super::{block_on, options, start, take};
use crate::{Change, ChangeKind, Error, Key, Options, Store, Stored};

/// Maximum number of changes in the log; small, so that a test exceeds it.
const LOG: u64 = 20;

#[derive(Clone, Debug)]
enum Step {
    Write { edits: Vec<Edit>, end: End },
    Watch { resource: String, namespace: Option<String>, back: u64 },
    Reopen,
}

#[derive(Clone, Debug)]
enum Edit {
    Put(Key, Vec<u8>),
    Delete(Key),
    Get(Key),
    List(String, Option<String>),
}

#[derive(Clone, Copy, Debug)]
enum End {
    Keep,
    Refuse,
    Panic,
}

fn resource() -> impl Strategy<Value = String> {
    prop_oneof!["/a", "/aa", "g/a"].prop_map(String::from)
}

fn namespace() -> impl Strategy<Value = String> {
    prop_oneof!["", "n", "nn"].prop_map(String::from)
}

fn key() -> impl Strategy<Value = Key> {
    (resource(), namespace(), "[xy]{1,2}").prop_map(|(resource, namespace, name)| Key {
        resource,
        namespace,
        name,
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (key(), proptest::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(key, value)| Edit::Put(key, value)),
        2 => key().prop_map(Edit::Delete),
        1 => key().prop_map(Edit::Get),
        1 => (resource(), proptest::option::of(namespace()))
            .prop_map(|(resource, namespace)| Edit::List(resource, namespace)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![8 => Just(End::Keep), 1 => Just(End::Refuse), 1 => Just(End::Panic)];
    prop_oneof![
        8 => (proptest::collection::vec(edit(), 0..8), end)
            .prop_map(|(edits, end)| Step::Write { edits, end }),
        2 => (resource(), proptest::option::of(namespace()), 0..LOG * 2)
            .prop_map(|(resource, namespace, back)| Step::Watch { resource, namespace, back }),
        1 => Just(Step::Reopen),
    ]
}

/// Expected content of the store.
#[derive(Clone, Default)]
struct Model {
    objects: BTreeMap<Key, Stored>,
    /// All changes; revision n has index n - 1.
    log: Vec<Change>,
}

impl Model {
    fn revision(&self) -> u64 {
        self.log.len() as u64
    }

    fn list(&self, resource: &str, namespace: &Option<String>) -> Vec<(Key, Stored)> {
        let rows = self.objects.iter().filter(|(key, _)| within(key, resource, namespace));
        rows.map(|(key, stored)| (key.clone(), stored.clone())).collect()
    }

    fn put(&mut self, key: &Key, bytes: &[u8]) -> u64 {
        let revision = self.revision() + 1;
        let stored = Stored { revision, value: bytes.into() };
        let previous = self.objects.insert(key.clone(), stored);
        let kind = ChangeKind::Put { value: bytes.into(), previous };
        self.log.push(Change { revision, key: key.clone(), kind });
        revision
    }

    fn delete(&mut self, key: &Key) -> Option<u64> {
        let previous = self.objects.remove(key)?;
        let revision = self.revision() + 1;
        self.log.push(Change { revision, key: key.clone(), kind: ChangeKind::Delete { previous } });
        Some(revision)
    }
}

fn within(key: &Key, resource: &str, namespace: &Option<String>) -> bool {
    key.resource == resource && namespace.as_ref().is_none_or(|one| *one == key.namespace)
}

/// Runs one write on the store and on the model, and compares every result in the closure.
async fn write(store: &Store, model: &mut Model, edits: Vec<Edit>, end: End) {
    let mut copy = model.clone();
    let outcome = store.write(move |txn| {
        for edit in &edits {
            match edit {
                Edit::Put(key, value) => {
                    assert_eq!(txn.put(key.clone(), value.clone()), copy.put(key, value))
                }
                Edit::Delete(key) => assert_eq!(txn.delete(key).unwrap(), copy.delete(key)),
                Edit::Get(key) => assert_eq!(txn.get(key).unwrap(), copy.objects.get(key).cloned()),
                Edit::List(resource, namespace) => {
                    let rows = txn.list(resource, namespace.as_deref()).unwrap();
                    assert_eq!(rows, copy.list(resource, namespace));
                }
            }
        }
        match end {
            End::Keep => Ok(copy),
            End::Refuse => Err("refused"),
            // Not through the panic hook: the test's output stays readable.
            End::Panic => std::panic::resume_unwind(Box::new("a test's panic")),
        }
    });
    match (end, outcome.await) {
        (End::Keep, Ok(Ok(copy))) => *model = copy,
        (End::Refuse, Ok(Err("refused"))) => {}
        (End::Panic, Err(Error::Panicked { message })) if message == "a test's panic" => {}
        (_, Ok(_)) => panic!("{end:?} was answered otherwise"),
        (_, Err(error)) => panic!("{end:?}: {error}"),
    }
}

async fn watch(store: &Store, model: &Model, filter: (String, Option<String>), after: u64) {
    let (resource, namespace) = filter;
    match store.watch(&resource, namespace.as_deref(), after) {
        Ok(mut watch) => {
            let log = model.log.iter().filter(|change| change.revision > after);
            let wanted = log.filter(|change| within(&change.key, &resource, &namespace));
            let wanted: Vec<_> = wanted.cloned().collect();
            assert_eq!(take(&mut watch, wanted.len()).await, wanted);
            let more = futures_util::future::poll_immediate(watch.next()).await;
            assert!(more.is_none(), "{more:?}");
            assert_eq!(watch.revision(), model.revision());
        }
        Err(Error::Compacted { .. }) => {
            assert!(model.revision() - after > LOG, "compacted {after} too early");
        }
        Err(error) => panic!("{error}"),
    }
}

fn compare(store: &Store, model: &Model) {
    for resource in ["/a", "/aa", "g/a"] {
        for namespace in [None, Some(String::new()), Some("n".to_owned())] {
            let (revision, rows) = store.list(resource, namespace.as_deref()).unwrap();
            assert_eq!(revision, model.revision());
            assert_eq!(rows, model.list(resource, &namespace));
        }
    }
    for (key, stored) in &model.objects {
        assert_eq!(store.get(key).unwrap().as_ref(), Some(stored));
    }
    let checked = store.check().unwrap();
    assert_eq!(checked.objects, model.objects.len() as u64);
    assert_eq!(checked.floor, model.revision().saturating_sub(LOG));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn behaves_as_a_map_with_a_history(steps in proptest::collection::vec(step(), 1..30)) {
        let disk = Disk::default();
        let options = || Options { log_entries: LOG, ..options() };
        let mut store = start(&disk, options()).unwrap();
        let mut model = Model::default();
        block_on(async {
            for step in steps {
                match step {
                    Step::Write { edits, end } => write(&store, &mut model, edits, end).await,
                    Step::Watch { resource, namespace, back } => {
                        let after = model.revision().saturating_sub(back);
                        watch(&store, &model, (resource, namespace), after).await;
                    }
                    Step::Reopen => {
                        drop(store);
                        store = start(&disk, options()).unwrap();
                    }
                }
                compare(&store, &model);
            }
        });
    }
}
