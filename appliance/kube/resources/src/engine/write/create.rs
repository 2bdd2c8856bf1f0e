//! Creation of an object, with generated names.

use jiff::Timestamp;
use serde_json::{Value, json};
use store::{Key, Txn};
use uuid::Uuid;

use super::room::{self, Growth};
use super::weight;
use crate::crds::lifecycle;
use crate::definition::ResourceDefinition;
use crate::engine::fields::{self, Body};
use crate::engine::metadata;
use crate::engine::ownership::Ownership;
use crate::engine::{Abort, Engine, FieldValidation, Part, Place, WriteOptions};
use crate::object::{
    decode, encode, is_deleting, meta, metadata_mut, names, namespace, set_revision, time_text,
};
use crate::status_error::{Cause, Reason, StatusError, failed};
use schema::FieldError;

/// Maximum random names that are tried for one `generateName`.
pub const MAX_GENERATED: usize = 8;

impl Engine {
    /// Creates `object` in `namespace`. Sets uid, creation time and generation, and a name if only
    /// `metadata.generateName` is given.
    ///
    /// # Errors
    /// 409 if the name is taken, 404 if the namespace does not exist, 422 if the object is invalid,
    /// 400 if kind, version or namespace of the object differ from the call's.
    pub async fn create(
        &self,
        resource: &str,
        namespace: &str,
        object: Value,
        options: WriteOptions,
    ) -> Result<Value, StatusError> {
        let place = self.place(resource, namespace)?;
        let now = self.inner.clock.now();
        let ownership = Ownership::of(&self.registry(), &place, &options, now);
        let mut object = object;
        if options.dry_run
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            // Upstream checks resourceVersion when it stores, which a dry run does not do.
            metadata.remove("resourceVersion");
        }
        weight::check_items(&place.definition, meta(&object, "name"), &object, None)?;
        let _turn = self.turn(&object).await?;
        let object = prepare(&place, object, &options.fields, Some(&ownership), now)?;
        self.commit(move |txn| {
            let mut created = insert(txn, &place, object, (&options, now))?;
            if options.dry_run {
                // Nothing was stored, so the object has no revision.
                metadata_mut(&mut created).remove("resourceVersion");
                return Err(Abort::DryRun(created));
            }
            Ok(created)
        })
        .await
    }
}

/// Prepares and checks a new object, as far as no store access is needed. `ownership` is `None` if
/// `managedFields` are already set.
pub(in crate::engine) fn prepare(
    place: &Place,
    mut object: Value,
    validation: &FieldValidation,
    ownership: Option<&Ownership>,
    now: Timestamp,
) -> Result<Value, StatusError> {
    let definition = place.definition.as_ref();
    if definition.terminating {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(StatusError::new(Reason::MethodNotAllowed, why));
    }
    metadata::check_shape(&object)?;
    fields::prune(definition, &mut object, None, validation, Body::Whole)?;
    metadata::check_identity(definition, &place.namespace, None, &mut object)?;
    if !meta(&object, "resourceVersion").is_empty() {
        return Err(StatusError::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    metadata::clear(&mut object);
    // The status of a namespace is set below; the type check refuses one of the wrong type.
    let status = &object["status"];
    if (definition.status_subresource || (definition.is_namespace && status.is_object()))
        && let Some(map) = object.as_object_mut()
    {
        map.remove("status");
    }
    let body = if ownership.is_some() { Body::Whole } else { Body::Apply };
    fields::fill_in(definition, &mut object, body);
    fields::prepare(definition, &mut object);
    if definition.is_namespace {
        namespace::begin(&mut object);
    }
    if let Some(ownership) = ownership {
        ownership.track(None, &mut object);
    }
    let mut errors = check_any_name(definition, &object);
    errors.extend(metadata::check(definition, None, &object));
    errors.extend(fields::check(definition, &object, None, Part::Main, &validation.warnings)?);
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
    if name.is_empty() && base.is_empty() {
        return vec![FieldError::required("metadata.name", "name or generateName is required")];
    }
    let mut errors = Vec::new();
    if !base.is_empty() {
        errors.extend(metadata::name_errors(definition, metadata::GENERATE_NAME, base));
    }
    let generated = if name.is_empty() { names::generate(base) } else { name.to_owned() };
    errors.extend(metadata::name_errors(definition, "metadata.name", &generated));
    errors
}

pub(in crate::engine) fn insert(
    txn: &mut Txn<'_>,
    place: &Place,
    mut object: Value,
    (options, now): (&WriteOptions, Timestamp),
) -> Result<Value, StatusError> {
    lifecycle::check_current(txn, &place.definition)?;
    check_namespace(txn, place, &object)?;
    let key = free_key(txn, place, &mut object)?;
    place.admit(&object, None)?;
    place.check_unique(txn, &key, &object, None)?;
    if place.definition.defines_kinds {
        let told = (&options.fields.warnings, now);
        lifecycle::admit(txn, &place.definition, &mut object, None, told)?;
    }
    if !place.definition.is_storage() {
        place.definition.complete_stored(&mut object);
    }
    let value = encode(&place.definition, &object)?;
    let growth = Growth { before: 0, after: value.len() };
    room::check(txn, place, &key.name, growth, options)?;
    let revision = txn.put(key, value);
    set_revision(&mut object, revision);
    if let Some(limit) = place.definition.keep_newest {
        drop_oldest(txn, place, limit)?;
    }
    Ok(object)
}

fn check_namespace(txn: &Txn<'_>, place: &Place, object: &Value) -> Result<(), StatusError> {
    let Some(namespaces) = place.namespaces.as_ref().filter(|_| place.definition.namespaced) else {
        return Ok(());
    };
    let key =
        Key { resource: namespaces.id(), namespace: String::new(), name: place.namespace.clone() };
    let stored = txn.get(&key).map_err(|error| failed("read a namespace", &error))?;
    let stored = stored.ok_or_else(|| StatusError::not_found(namespaces, &place.namespace))?;
    if is_deleting(&decode(namespaces, &stored)?) {
        let (namespace, name) = (&place.namespace, meta(object, "name"));
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut error = StatusError::forbidden(&place.definition, name, &why);
        error.details.causes.push(Cause {
            reason: "NamespaceTerminating",
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        });
        return Err(error);
    }
    Ok(())
}

/// Returns the key of a new object; 409 if the name is taken. Generates a missing name.
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
            if place.definition.is_namespace {
                namespace::label(object);
            }
            return Ok(key);
        }
    }
    Err(StatusError::already_exists(&place.definition, &base))
}

/// Returns the subject of a record: the record's name without its last dot and suffix. Clients name
/// an Event `OBJECT.SUFFIX`.
fn subject(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(subject, _)| subject)
}

fn drop_oldest(txn: &mut Txn<'_>, place: &Place, limit: usize) -> Result<(), StatusError> {
    let failed = |error| failed("drop the oldest records", &error);
    let resource = place.definition.id();
    for key in txn.beyond(&resource, &place.namespace, limit, subject).map_err(failed)? {
        txn.delete(&key).map_err(failed)?;
    }
    Ok(())
}
