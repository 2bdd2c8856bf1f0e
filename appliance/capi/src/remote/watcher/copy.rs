//! Copy of the watched objects in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::meta::ObjectKey;
use serde_json::Value;

use crate::remote::list::{self, OBJECTS_MAX};

/// Last known objects of a scope, at most [`OBJECTS_MAX`].
#[derive(Default)]
pub struct Copy(Mutex<KnownObjects>);

/// The copy has [`OBJECTS_MAX`] objects already.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

#[derive(Default)]
struct KnownObjects {
    /// Objects of the last list, with the events since.
    watched: BTreeMap<ObjectKey, Arc<Value>>,
    /// Objects of responses whose events have not come yet.
    newer: BTreeMap<ObjectKey, Newer>,
    /// Number of lists that were begun.
    lists: u64,
    /// Number of begun lists when a response could not be ordered. Only a later list is newer.
    unordered_at: Option<u64>,
}

/// Object of a response that is newer than the last event of the object.
struct Newer {
    object: Arc<Value>,
    revision: u64,
    /// Number of begun lists at the time of the response: a later list contains the object.
    lists: u64,
}

/// Number of a list, in the order of their starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListNumber(u64);

/// Returns the resource version as a number. Since Kubernetes 1.35 clients may compare those of one
/// kind so (KEP-5504); etcd has always numbered its revisions.
fn revision(object: &Value) -> Option<u64> {
    object.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()
}

impl KnownObjects {
    fn get(&self, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.newer.get(key).map(|newer| &newer.object).or_else(|| self.watched.get(key))
    }

    /// Forgets the object of a response, unless the event with `object` is older.
    fn catch_up(&mut self, key: &ObjectKey, object: &Value) {
        let event = revision(object);
        if self.newer.get(key).is_some_and(|newer| event.is_none_or(|it| it >= newer.revision)) {
            self.newer.remove(key);
        }
    }
}

impl Copy {
    fn lock(&self) -> MutexGuard<'_, KnownObjects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a list, before its request is sent.
    pub fn begin_list(&self) -> ListNumber {
        let mut known = self.lock();
        known.lists += 1;
        ListNumber(known.lists)
    }

    /// Replaces all objects by those of the list `number`, at the revision of the list. Returns the
    /// keys of all new objects and all old ones.
    pub fn replace(
        &self,
        number: ListNumber,
        at: &str,
        objects: Vec<Value>,
    ) -> BTreeSet<ObjectKey> {
        let new = objects.into_iter().map(|object| (list::key(&object), Arc::new(object)));
        let new: BTreeMap<_, _> = new.collect();
        let mut keys: BTreeSet<ObjectKey> = new.keys().cloned().collect();
        let at: Option<u64> = at.parse().ok();
        let mut known = self.lock();
        let old = std::mem::replace(&mut known.watched, new);
        keys.extend(old.into_keys());
        let is_newer = |newer: &Newer| {
            newer.lists >= number.0 && at.is_some_and(|revision| newer.revision > revision)
        };
        known.newer.retain(|_, newer| is_newer(newer));
        known.unordered_at = known.unordered_at.filter(|lists| *lists >= number.0);
        keys
    }

    /// Adds or replaces one object.
    pub fn put(&self, key: ObjectKey, object: Value) -> Result<(), Full> {
        let mut known = self.lock();
        if known.watched.len() >= OBJECTS_MAX && !known.watched.contains_key(&key) {
            return Err(Full);
        }
        known.catch_up(&key, &object);
        known.watched.insert(key, Arc::new(object));
        Ok(())
    }

    /// Removes an object that the server deleted; an unknown key changes nothing. `last` is the
    /// last state of the object.
    pub fn remove(&self, key: &ObjectKey, last: &Value) {
        let mut known = self.lock();
        known.catch_up(key, last);
        known.watched.remove(key);
    }

    /// Uses the object of a response until the watch has an event as new as the response. An object
    /// outside the scope is ignored, because no event would replace it.
    pub fn answered(&self, object: &Value) {
        let key = list::key(object);
        let mut known = self.lock();
        let Some(current) = known.get(&key) else { return };
        match (revision(current), revision(object)) {
            (Some(old), Some(new)) if new > old => {
                let newer =
                    Newer { object: Arc::new(object.clone()), revision: new, lists: known.lists };
                known.newer.insert(key, newer);
            }
            (Some(_), Some(_)) => {}
            _ => known.unordered_at = Some(known.lists),
        }
    }

    /// Returns true unless a response could not be ordered, and so the copy may be older than the
    /// box's own writes.
    pub fn is_ordered(&self) -> bool {
        self.lock().unordered_at.is_none()
    }

    /// Returns the last known state of an object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        self.lock().get(key).cloned()
    }

    /// Returns all objects, ordered by key.
    pub fn all(&self) -> Vec<Arc<Value>> {
        let known = self.lock();
        let keys: BTreeSet<&ObjectKey> = known.watched.keys().chain(known.newer.keys()).collect();
        keys.into_iter().filter_map(|key| known.get(key).cloned()).collect()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.lock().watched.len()
    }
}

#[cfg(test)]
mod tests;
