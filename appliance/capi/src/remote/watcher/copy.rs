//! Copy of the watched objects in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::meta::ObjectKey;
use serde_json::Value;

use crate::remote::list::{self, OBJECTS_MAX};

/// Last known objects of a scope, at most [`OBJECTS_MAX`].
#[derive(Default)]
pub struct Copy(Mutex<BTreeMap<ObjectKey, Arc<Value>>>);

/// The copy has [`OBJECTS_MAX`] objects already.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

impl Copy {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Arc<Value>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces all objects. Returns the keys of all new objects and all old ones.
    pub fn replace(&self, objects: Vec<Value>) -> BTreeSet<ObjectKey> {
        let new = objects.into_iter().map(|object| (list::key(&object), Arc::new(object)));
        let new: BTreeMap<_, _> = new.collect();
        let mut keys: BTreeSet<ObjectKey> = new.keys().cloned().collect();
        let old = std::mem::replace(&mut *self.lock(), new);
        keys.extend(old.into_keys());
        keys
    }

    /// Adds or replaces one object.
    pub fn put(&self, key: ObjectKey, object: Value) -> Result<(), Full> {
        let mut objects = self.lock();
        if objects.len() >= OBJECTS_MAX && !objects.contains_key(&key) {
            return Err(Full);
        }
        objects.insert(key, Arc::new(object));
        Ok(())
    }

    /// Removes one object; an unknown key changes nothing.
    pub fn remove(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    /// Returns the last known state of an object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        self.lock().get(key).cloned()
    }

    /// Returns all objects, ordered by key.
    pub fn all(&self) -> Vec<Arc<Value>> {
        self.lock().values().cloned().collect()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use api::meta::ObjectKey;
    use serde_json::{Value, json};

    use super::{Copy, Full, OBJECTS_MAX};

    fn object(name: &str) -> Value {
        json!({ "metadata": { "namespace": "default", "name": name } })
    }

    #[test]
    fn a_list_yields_the_keys_of_vanished_objects_too() {
        let copy = Copy::default();
        copy.replace(vec![object("a"), object("b")]);
        let keys = copy.replace(vec![object("b"), object("c")]);
        assert_eq!(keys, ["a", "b", "c"].map(|name| ObjectKey::new("default", name)).into());
        assert_eq!(copy.get(&ObjectKey::new("default", "a")), None);
        assert_eq!(copy.all().len(), 2);
    }

    #[test]
    fn a_full_copy_accepts_changes_only() {
        let copy = Copy::default();
        let names: Vec<String> = (0..OBJECTS_MAX).map(|index| format!("m{index}")).collect();
        copy.replace(names.iter().map(|name| object(name)).collect());
        let put = |name: &str| copy.put(ObjectKey::new("default", name), object(name));
        assert_eq!(put("m0"), Ok(()));
        assert_eq!(put("another"), Err(Full));
        copy.remove(&ObjectKey::new("default", "m1"));
        assert_eq!(put("another"), Ok(()));
    }
}
