//! In-memory [`Objects`] with the conflict rules of the API, for tests of reconcilers.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::core::ObjectEvent;
use api::meta::{ObjectKey, Resource};
use serde_json::{Value, json};

use crate::{ObjectError, Objects, Pending};

/// Objects by plural name of the kind and key.
type ByKey = BTreeMap<(&'static str, ObjectKey), Value>;

/// In-memory objects and recorded events.
#[derive(Default)]
pub struct Memory {
    objects: Mutex<ByKey>,
    revision: Mutex<u64>,
    /// Recorded events, oldest first.
    pub happenings: Mutex<Vec<ObjectEvent>>,
    /// Name of an object whose status is written only while `gate` is unlocked.
    pub gated: Mutex<String>,
    /// Lock that delays status writes of the object [`Memory::gated`]. A test holds the lock.
    pub gate: tokio::sync::Mutex<()>,
}

fn key_of(object: &Value) -> ObjectKey {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
    ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"))
}

/// Returns true if finalizers delay the deletion of an object.
fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    fn stamp(&self, object: &mut Value) {
        let mut revision = locked(&self.revision);
        *revision += 1;
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{revision}"));
        }
    }

    /// Stores `object` without a conflict check.
    pub fn put(&self, resource: Resource, mut object: Value) -> ObjectKey {
        self.stamp(&mut object);
        let key = key_of(&object);
        locked(&self.objects).insert((resource.plural, key.clone()), object);
        key
    }

    /// Reads the object `name` in the namespace `default`; `None` if absent.
    pub fn peek(&self, resource: Resource, name: &str) -> Option<Value> {
        let key = (resource.plural, ObjectKey::new("default", name));
        locked(&self.objects).get(&key).cloned()
    }

    /// Returns a copy of all objects, without the recorded events.
    pub fn copied(&self) -> Self {
        let objects = Mutex::new(locked(&self.objects).clone());
        let revision = Mutex::new(*locked(&self.revision));
        Self { objects, revision, ..Self::default() }
    }

    /// Lists the names of all objects of a kind.
    pub fn names(&self, resource: Resource) -> Vec<String> {
        let objects = locked(&self.objects);
        let of_kind = objects.keys().filter(|(plural, _)| *plural == resource.plural);
        of_kind.map(|(_, key)| key.name.clone()).collect()
    }

    fn replace(&self, resource: Resource, new: Value, status: bool) -> Result<Value, ObjectError> {
        let key = key_of(&new);
        let mut objects = locked(&self.objects);
        let old = objects
            .get_mut(&(resource.plural, key.clone()))
            .ok_or_else(|| ObjectError::NotFound(key.to_string()))?;
        if old["metadata"]["resourceVersion"] != new["metadata"]["resourceVersion"] {
            return Err(ObjectError::Conflict(key.to_string()));
        }
        let part = if status { "status" } else { "spec" };
        old[part] = new[part].clone();
        if !status {
            if let Some(data) = new.get("data") {
                old["data"] = data.clone();
            }
            for field in ["finalizers", "labels", "annotations"] {
                let empty = if field == "finalizers" { json!([]) } else { json!({}) };
                let value = new["metadata"].get(field).cloned();
                old["metadata"][field] = value.unwrap_or(empty);
            }
        }
        self.stamp(old);
        let new = old.clone();
        if !new["metadata"]["deletionTimestamp"].is_null() && !is_held(&new) {
            objects.remove(&(resource.plural, key));
        }
        Ok(new)
    }

    fn remove(
        &self,
        resource: Resource,
        key: &ObjectKey,
        uid: Option<&str>,
    ) -> Result<(), ObjectError> {
        let mut objects = locked(&self.objects);
        let place = (resource.plural, key.clone());
        let object = objects.get_mut(&place);
        let object = object.ok_or_else(|| ObjectError::NotFound(key.to_string()))?;
        if uid.is_some_and(|uid| object["metadata"]["uid"] != uid) {
            return Err(ObjectError::Conflict(key.to_string()));
        }
        if is_held(object) {
            object["metadata"]["deletionTimestamp"] = json!(jiff::Timestamp::UNIX_EPOCH);
            self.stamp(object);
        } else {
            objects.remove(&place);
        }
        Ok(())
    }
}

impl Objects for Memory {
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        Box::pin(async move {
            let objects = locked(&self.objects);
            let object = objects.get(&(resource.plural, key.clone()));
            object.cloned().ok_or_else(|| ObjectError::NotFound(key.to_string()))
        })
    }

    fn list<'a>(
        &'a self,
        resource: Resource,
        _namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>> {
        Box::pin(async move {
            let objects = locked(&self.objects);
            let of_kind = objects.iter().filter(|((plural, _), _)| *plural == resource.plural);
            Ok(of_kind.map(|(_, object)| object.clone()).collect())
        })
    }

    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(async move {
            let key = key_of(&object);
            if locked(&self.objects).contains_key(&(resource.plural, key.clone())) {
                return Err(ObjectError::AlreadyExists(key.to_string()));
            }
            self.put(resource, object.clone());
            Ok(object)
        })
    }

    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(async move { self.replace(resource, object, false) })
    }

    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(async move {
            let is_gated = key_of(&object).name == *locked(&self.gated);
            let _open = if is_gated { Some(self.gate.lock().await) } else { None };
            self.replace(resource, object, true)
        })
    }

    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()> {
        Box::pin(async move { self.remove(resource, key, None) })
    }

    fn delete_uid<'a>(
        &'a self,
        resource: Resource,
        key: &'a ObjectKey,
        uid: &'a str,
    ) -> Pending<'a, ()> {
        Box::pin(async move { self.remove(resource, key, Some(uid)) })
    }

    fn record(&self, happening: ObjectEvent) {
        locked(&self.happenings).push(happening);
    }
}
