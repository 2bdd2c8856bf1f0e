//! Replacing and patching an object.

use serde_json::Value;
use store::Txn;

use super::object::{
    bump_generation, decode, encode, finalizers, intent_differs, is_deleting, meta, set_revision,
};
use super::{Abort, Engine, Part, Patch, Place, WriteOptions, failed, metadata};
use crate::field_error::FieldError;
use crate::status_error::StatusError;

/// What the caller wants of the object.
enum Change {
    Replace(Value),
    Patch(Patch),
}

impl Engine {
    /// Replaces an object. `metadata.resourceVersion` is that of the copy it was made from.
    ///
    /// # Errors
    /// 409 when that copy is outdated, 404, 422, 400.
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

    /// Patches an object as it is now. A resourceVersion inside the patch is a precondition;
    /// without one there is no conflict, because the patch is applied inside the transaction.
    ///
    /// # Errors
    /// 409 for an unmet precondition, 404, 422, 400.
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
        if options.part == Part::Status && !place.definition.status_subresource {
            return Err(StatusError::no_such_resource());
        }
        let name = name.to_owned();
        self.commit(move |txn| {
            let object = modify(txn, &place, &name, change, options.part)?;
            if options.dry_run { Err(Abort::DryRun(object)) } else { Ok(object) }
        })
        .await
    }
}

fn modify(
    txn: &mut Txn<'_>,
    place: &Place,
    name: &str,
    change: Change,
    part: Part,
) -> Result<Value, StatusError> {
    let key = place.key(name);
    let stored = txn.get(&key).map_err(|error| failed("read an object", &error))?;
    let stored = stored.ok_or_else(|| StatusError::not_found(&place.definition, name))?;
    let old = decode(&stored)?;
    let mut new = match change {
        Change::Replace(object) => {
            check_revision_given(place, name, &object)?;
            object
        }
        Change::Patch(patch) => patch.apply(old.clone())?,
    };
    metadata::check_identity(&place.definition, &place.namespace, Some(name), &mut new)?;
    check_preconditions(place, name, &old, &new)?;
    let mut new = take_part(place, &old, new, part);
    if let Some(prepare) = &place.definition.prepare {
        prepare(&mut new);
    }
    check(place, name, &old, &new)?;
    if place.definition.tracks_generation && intent_differs(&place.definition, &old, &new) {
        bump_generation(&mut new);
    }
    if is_deleting(&new) && finalizers(&new).next().is_none() {
        let revision = txn.delete(&key).map_err(|error| failed("delete an object", &error))?;
        set_revision(&mut new, revision.unwrap_or(stored.revision));
        return Ok(new);
    }
    // A write that changes nothing is no write: no revision, no event.
    if new != old {
        let revision = txn.put(key, encode(&new)?);
        set_revision(&mut new, revision);
    }
    Ok(new)
}

fn check_revision_given(place: &Place, name: &str, object: &Value) -> Result<(), StatusError> {
    if place.definition.unconditional_update || !meta(object, "resourceVersion").is_empty() {
        return Ok(());
    }
    let field = "metadata.resourceVersion";
    let error = FieldError::invalid(field, &Value::from(""), "must be specified for an update");
    Err(StatusError::invalid(&place.definition, name, &[error]))
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
            "Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
        );
        return Err(StatusError::conflict(&place.definition, name, &why));
    }
    let revision = meta(new, "resourceVersion");
    if !revision.is_empty() && revision != meta(old, "resourceVersion") {
        return Err(StatusError::modified(&place.definition, name));
    }
    Ok(())
}

/// The stored object with the part that was written taken from `new`.
fn take_part(place: &Place, old: &Value, new: Value, part: Part) -> Value {
    let (mut base, source) = match part {
        Part::Main => (new, old),
        Part::Status => (old.clone(), &new),
    };
    if part == Part::Main {
        metadata::carry_over(old, &mut base);
    }
    if place.definition.status_subresource
        && let Some(map) = base.as_object_mut()
    {
        match source.get("status").filter(|status| !status.is_null()) {
            Some(status) => map.insert("status".to_owned(), status.clone()),
            None => map.remove("status"),
        };
    }
    base
}

fn check(place: &Place, name: &str, old: &Value, new: &Value) -> Result<(), StatusError> {
    let mut errors = metadata::check(Some(old), new);
    if let Some(validate) = &place.definition.validate {
        errors.extend(validate(new, Some(old)));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(StatusError::invalid(&place.definition, name, &errors))
    }
}
