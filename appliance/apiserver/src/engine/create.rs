//! Creating an object.

use jiff::Timestamp;
use serde_json::{Value, json};
use store::{Key, Txn};
use uuid::Uuid;

use super::object::{encode, is_deleting, meta, metadata_mut, set_revision, time_text};
use super::{Abort, Engine, Place, WriteOptions, failed, metadata, names, object};
use crate::definition::ResourceDefinition;
use crate::field_error::FieldError;
use crate::status_error::{Cause, StatusError};

/// Names tried for one `generateName` before giving up.
pub const MAX_GENERATED: usize = 8;

impl Engine {
    /// Creates `object` in `namespace`; gives it uid, creation time, generation and, when only
    /// `metadata.generateName` is set, a name.
    ///
    /// # Errors
    /// 409 when the name is taken, 404 when the namespace does not exist, 422 when the object
    /// breaks a rule, 400 when it contradicts the call.
    pub async fn create(
        &self,
        resource: &str,
        namespace: &str,
        object: Value,
        options: WriteOptions,
    ) -> Result<Value, StatusError> {
        let place = self.place(resource, namespace)?;
        let object = prepare(&place, object, self.inner.clock.now())?;
        self.commit(move |txn| {
            let created = insert(txn, &place, object)?;
            if options.dry_run { Err(Abort::DryRun(created)) } else { Ok(created) }
        })
        .await
    }
}

/// Everything that needs no look into the store.
fn prepare(place: &Place, mut object: Value, now: Timestamp) -> Result<Value, StatusError> {
    let definition = place.definition.as_ref();
    metadata::check_identity(definition, &place.namespace, None, &mut object)?;
    if !meta(&object, "resourceVersion").is_empty() {
        return Err(StatusError::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    metadata::clear(&mut object);
    if definition.status_subresource
        && let Some(map) = object.as_object_mut()
    {
        map.remove("status");
    }
    if let Some(prepare) = &definition.prepare {
        prepare(&mut object);
    }
    let mut errors = check_any_name(definition, &object);
    errors.extend(metadata::check(None, &object));
    if let Some(validate) = &definition.validate {
        errors.extend(validate(&object, None));
    }
    if !errors.is_empty() {
        return Err(StatusError::invalid(definition, meta(&object, "name"), &errors));
    }
    let metadata = metadata_mut(&mut object);
    metadata.insert("uid".to_owned(), json!(Uuid::new_v4().to_string()));
    metadata.insert("creationTimestamp".to_owned(), json!(time_text(now)));
    if definition.tracks_generation {
        metadata.insert("generation".to_owned(), json!(1));
    }
    Ok(object)
}

fn check_any_name(definition: &ResourceDefinition, object: &Value) -> Vec<FieldError> {
    let (name, base) = (meta(object, "name"), meta(object, "generateName"));
    if !name.is_empty() {
        return metadata::check_name(definition, name).into_iter().collect();
    }
    if base.is_empty() {
        return vec![FieldError::required("metadata.name", "name or generateName is required")];
    }
    // The base may end in a dash, the whole may not.
    let sample = names::generate(base);
    let wrong = metadata::check_name(definition, &sample);
    wrong
        .map(|wrong| FieldError { field: "metadata.generateName".to_owned(), ..wrong })
        .into_iter()
        .collect()
}

fn insert(txn: &mut Txn<'_>, place: &Place, mut object: Value) -> Result<Value, StatusError> {
    check_namespace(txn, place)?;
    let key = free_key(txn, place, &mut object)?;
    let revision = txn.put(key, encode(&object)?);
    set_revision(&mut object, revision);
    if let Some(limit) = place.definition.keep_newest {
        drop_oldest(txn, place, limit)?;
    }
    Ok(object)
}

fn check_namespace(txn: &Txn<'_>, place: &Place) -> Result<(), StatusError> {
    let Some(namespaces) = place.namespaces.as_ref().filter(|_| place.definition.namespaced) else {
        return Ok(());
    };
    let key =
        Key { resource: namespaces.id(), namespace: String::new(), name: place.namespace.clone() };
    let stored = txn.get(&key).map_err(|error| failed("read a namespace", &error))?;
    let stored = stored.ok_or_else(|| StatusError::not_found(namespaces, &place.namespace))?;
    if is_deleting(&object::decode(&stored)?) {
        let why = format!("namespace {} is being terminated", place.namespace);
        let mut error = StatusError::forbidden(&place.definition, "", &why);
        error.details.causes.push(Cause {
            reason: "NamespaceTerminating",
            message: why,
            field: "metadata.namespace".to_owned(),
        });
        return Err(error);
    }
    Ok(())
}

/// The object's key, which is not taken; generates the name where none is given.
fn free_key(txn: &Txn<'_>, place: &Place, object: &mut Value) -> Result<Key, StatusError> {
    let taken = |key: &Key| {
        let found = txn.get(key).map_err(|error| failed("look for a name", &error));
        found.map(|found| found.is_some())
    };
    let name = meta(object, "name").to_owned();
    if !name.is_empty() {
        let key = place.key(&name);
        return match taken(&key)? {
            true => Err(StatusError::already_exists(&place.definition, &name)),
            false => Ok(key),
        };
    }
    let base = meta(object, "generateName").to_owned();
    for _ in 0..MAX_GENERATED {
        let name = names::generate(&base);
        let key = place.key(&name);
        if !taken(&key)? {
            metadata_mut(object).insert("name".to_owned(), json!(name));
            return Ok(key);
        }
    }
    Err(StatusError::already_exists(&place.definition, &base))
}

fn drop_oldest(txn: &mut Txn<'_>, place: &Place, limit: usize) -> Result<(), StatusError> {
    let failed = |error| failed("drop the oldest records", &error);
    let mut kept = txn.list(&place.definition.id(), Some(&place.namespace)).map_err(failed)?;
    let excess = kept.len().saturating_sub(limit);
    kept.sort_by_key(|(_, stored)| stored.revision);
    for (key, _) in kept.into_iter().take(excess) {
        txn.delete(&key).map_err(failed)?;
    }
    Ok(())
}
