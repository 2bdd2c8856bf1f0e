//! Replacement (PUT) and patching (PATCH) of objects.

use jiff::Timestamp;
use serde_json::Value;
use store::{Key, Stored, Txn};

use super::room::{self, Growth};
use super::weight;
use crate::crds::lifecycle;
use crate::engine::fields::{self, Body, FieldValidation};
use crate::engine::metadata;
use crate::engine::ownership::{self, Ownership};
use crate::engine::{Abort, Engine, Part, Patch, Place, WriteOptions};
use crate::object::{
    bump_generation, decode, encode, intent_differs, is_deleting, is_held, meta, metadata_mut,
    namespace, set_revision,
};
use crate::status_error::{StatusError, failed};
use schema::FieldError;

/// Configuration of a server-side apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// Object with only the fields that the field manager sets.
    pub object: Value,
    /// True to take over fields that other managers own; false to return 409 for such fields.
    pub force: bool,
    /// Error for a missing object if the caller may not create it; `None` if the caller may.
    pub uncreatable: Option<StatusError>,
}

/// Change of an object that the caller requests.
pub(in crate::engine) enum Change {
    Replace(Value),
    Patch(Patch),
    Apply(Configuration),
}

impl Engine {
    /// Replaces an object. `metadata.resourceVersion`, if set, must be the stored object's.
    ///
    /// # Errors
    /// 409 for an outdated resourceVersion, 404 for a missing object, 422 or 400 for an invalid
    /// object.
    pub async fn update(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        object: Value,
        options: WriteOptions,
    ) -> Result<Value, StatusError> {
        self.modify(resource, namespace, name, Change::Replace(object), options).await
    }

    /// Patches the present object. A resourceVersion in the patch is a precondition. Without a
    /// resourceVersion, a patch never conflicts, because it is applied inside the transaction.
    ///
    /// # Errors
    /// 409 for a failed precondition, 404 for a missing object, 422 or 400 for an invalid result.
    pub async fn patch(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: Patch,
        options: WriteOptions,
    ) -> Result<Value, StatusError> {
        self.modify(resource, namespace, name, Change::Patch(patch), options).await
    }

    async fn modify(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        change: Change,
        options: WriteOptions,
    ) -> Result<Value, StatusError> {
        let place = self.place(resource, namespace)?;
        check_part(&place, options.part)?;
        let _turn = match &change {
            Change::Replace(object) => self.turn(object).await?,
            Change::Apply(config) => self.turn(&config.object).await?,
            Change::Patch(_) => None,
        };
        let name = name.to_owned();
        let now = self.inner.clock.now();
        let ownership = Ownership::of(&self.registry(), &place, &options, now);
        self.commit(move |txn| {
            let (mut object, before) =
                modify(txn, &place, &name, change, (&options, &ownership), now)?;
            if options.dry_run {
                // Nothing was stored, so the object keeps its previous revision.
                set_revision(&mut object, before);
                return Err(Abort::DryRun(object));
            }
            Ok(object)
        })
        .await
    }
}

/// Returns 404 if the kind has no subresource for `part`.
pub(in crate::engine) fn check_part(place: &Place, part: Part) -> Result<(), StatusError> {
    let definition = place.definition.as_ref();
    let there = match part {
        Part::Main => true,
        Part::Status => definition.status_subresource || definition.is_namespace,
        Part::Finalize => definition.is_namespace,
    };
    if there { Ok(()) } else { Err(StatusError::no_such_resource()) }
}

/// Returns the field validation of an apply, whose unknown fields the merge has already refused.
pub(in crate::engine) fn lenient(options: &WriteOptions) -> FieldValidation {
    FieldValidation { warnings: options.fields.warnings.clone(), ..FieldValidation::default() }
}

/// Changes the object `name` in the transaction. Returns the new state and the previous revision.
pub(in crate::engine) fn modify(
    txn: &mut Txn<'_>,
    place: &Place,
    name: &str,
    change: Change,
    (options, ownership): (&WriteOptions, &Ownership),
    now: Timestamp,
) -> Result<(Value, u64), StatusError> {
    lifecycle::check_current(txn, &place.definition)?;
    let part = options.part;
    let key = place.key(name);
    let stored = txn.get(&key).map_err(|error| failed("read an object", &error))?;
    let stored = stored.ok_or_else(|| StatusError::not_found(&place.definition, name))?;
    let old = decode(&place.definition, &stored)?;
    let (mut new, body) = changed(place, name, &old, change, ownership)?;
    metadata::check_shape(&new)?;
    weight::check_items(&place.definition, name, &new, Some(&old))?;
    let fixed = match body {
        Body::Patch | Body::Apply => metadata::check_fixed(&old, &new),
        Body::Whole => Vec::new(),
    };
    match body {
        Body::Apply => {
            fields::prune(&place.definition, &mut new, Some(&old), &lenient(options), body)?;
        }
        _ => fields::prune(&place.definition, &mut new, Some(&old), &options.fields, body)?,
    }
    let applied = (body == Body::Apply).then(|| new["metadata"]["managedFields"].clone());
    metadata::check_identity(&place.definition, &place.namespace, Some(name), &mut new)?;
    // For a patched object, another uid is a change, and is refused as one.
    if fixed.is_empty() {
        check_preconditions(place, name, &old, &new)?;
    }
    // Must precede `take_part`: a write of the status must not add defaults to the other fields.
    fields::fill_in(&place.definition, &mut new, body);
    let mut new = take_part(place, &old, new, part);
    fields::prepare(&place.definition, &mut new);
    match applied {
        Some(managed) => ownership::replace(&old, &mut new, managed),
        None => ownership.track(Some(&old), &mut new),
    }
    if options.manager.is_some() {
        weight::check_owners(&place.definition, name, &old, &new)?;
    }
    check(place, name, &old, &new, options, fixed)?;
    if place.definition.defines_kinds {
        let told = (&options.fields.warnings, now);
        lifecycle::admit(txn, &place.definition, &mut new, Some(&old), told)?;
    }
    place.admit(&new, Some(&old))?;
    place.check_unique(txn, &key, &new, Some(&old))?;
    if place.definition.tracks_generation && intent_differs(&place.definition, &old, &new) {
        bump_generation(&mut new);
    }
    if !place.definition.is_storage() {
        place.definition.complete_stored(&mut new);
    }
    let revision = keep(txn, (place, key), (&stored, &old), &new, options)?;
    revision.into_iter().for_each(|revision| set_revision(&mut new, revision));
    Ok((new, stored.revision))
}

/// Applies the caller's change to `old`, without validation.
fn changed(
    place: &Place,
    name: &str,
    old: &Value,
    change: Change,
    ownership: &Ownership,
) -> Result<(Value, Body), StatusError> {
    Ok(match change {
        Change::Replace(mut object) => {
            // Upstream treats revision zero as absent.
            if meta(&object, "resourceVersion") == "0" {
                metadata_mut(&mut object).remove("resourceVersion");
            }
            check_revision_given(place, name, &object)?;
            (object, Body::Whole)
        }
        Change::Patch(patch) => (patch.apply(old.clone())?, Body::Patch),
        Change::Apply(config) => {
            weight::check_items(&place.definition, name, &config.object, Some(old))?;
            (ownership.apply(Some(old), &config.object, config.force)?, Body::Apply)
        }
    })
}

/// Stores the changed object, or deletes an object in deletion without finalizers. Returns the new
/// revision; `None` if nothing changed.
fn keep(
    txn: &mut Txn<'_>,
    (place, key): (&Place, Key),
    (stored, old): (&Stored, &Value),
    new: &Value,
    options: &WriteOptions,
) -> Result<Option<u64>, StatusError> {
    if is_deleting(new) && !is_held(&place.definition, new) {
        let revision = txn.delete(&key).map_err(|error| failed("delete an object", &error))?;
        return Ok(Some(revision.unwrap_or(stored.revision)));
    }
    // A write that changes nothing gets no new revision and no event.
    if new == old {
        return Ok(None);
    }
    let value = encode(&place.definition, new)?;
    let growth = Growth { before: stored.value.len(), after: value.len() };
    room::check(txn, place, &key.name, growth, options)?;
    Ok(Some(txn.put(key, value)))
}

fn check_revision_given(place: &Place, name: &str, object: &Value) -> Result<(), StatusError> {
    if place.definition.unconditional_update || !meta(object, "resourceVersion").is_empty() {
        return Ok(());
    }
    let field = "metadata.resourceVersion";
    let error = FieldError::invalid(field, &Value::from(0), "must be specified for an update");
    Err(StatusError::invalid_resource(&place.definition, name, &error))
}

fn check_preconditions(
    place: &Place,
    name: &str,
    old: &Value,
    new: &Value,
) -> Result<(), StatusError> {
    let wanted = meta(new, "uid");
    let uid = meta(old, "uid");
    if !wanted.is_empty() && wanted != uid {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object \
             meta: {uid}",
            registry_key(place, name)
        );
        return Err(StatusError::conflict(&place.definition, name, &why));
    }
    let revision = meta(new, "resourceVersion");
    if !revision.is_empty() && revision != meta(old, "resourceVersion") {
        return Err(StatusError::modified(&place.definition, name));
    }
    Ok(())
}

/// Returns the key of the object in upstream's etcd (`/registry/…`), which error messages contain.
fn registry_key(place: &Place, name: &str) -> String {
    let definition = place.definition.as_ref();
    // Upstream stores Kubernetes' own kinds without the group.
    let group = if definition.native { "" } else { &definition.group };
    let parts = ["/registry", group, &definition.plural, &place.namespace, name];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

/// Returns `old` with the part `part` replaced by the same part of `new`.
fn take_part(place: &Place, old: &Value, new: Value, part: Part) -> Value {
    let definition = place.definition.as_ref();
    match part {
        Part::Main => {
            let mut base = new;
            metadata::carry_over(old, &mut base);
            if definition.status_subresource || definition.is_namespace {
                take_status(&mut base, old);
            }
            if definition.is_namespace {
                namespace::take_finalizers(&mut base, old);
            }
            base
        }
        Part::Status => {
            let mut base = old.clone();
            take_status(&mut base, &new);
            base
        }
        Part::Finalize => {
            let mut base = old.clone();
            namespace::take_finalizers(&mut base, &new);
            base
        }
    }
}

fn take_status(object: &mut Value, source: &Value) {
    let Some(map) = object.as_object_mut() else { return };
    match source.get("status").filter(|status| !status.is_null()) {
        Some(status) => map.insert("status".to_owned(), status.clone()),
        None => map.remove("status"),
    };
}

fn check(
    place: &Place,
    name: &str,
    old: &Value,
    new: &Value,
    options: &WriteOptions,
    mut errors: Vec<FieldError>,
) -> Result<(), StatusError> {
    errors.extend(metadata::check(&place.definition, Some(old), new));
    errors.extend(fields::check(
        &place.definition,
        new,
        Some(old),
        options.part,
        &options.fields.warnings,
    )?);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(StatusError::invalid(&place.definition, name, &errors))
    }
}
