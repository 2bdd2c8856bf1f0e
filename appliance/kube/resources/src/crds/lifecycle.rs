//! Checks and changes of a CustomResourceDefinition inside its writing or deleting transaction.

use jiff::Timestamp;
use serde_json::{Value, json};
use store::{Key, Txn};

use super::{FINALIZER, MAX_DEFINITIONS, RESOURCE, status};
use crate::builtin::compiled;
use crate::definition::{ResourceDefinition, crd};
use crate::object::{Warnings, decode, encode_own, meta, metadata_mut};
use crate::status_error::{StatusError, failed};

/// Checks a CustomResourceDefinition before it is stored, and sets its status.
///
/// # Errors
/// 403 if the definition contradicts a compiled-in kind or exceeds [`super::MAX_DEFINITIONS`].
pub fn admit(
    txn: &Txn<'_>,
    definition: &ResourceDefinition,
    new: &mut Value,
    old: Option<&Value>,
    (warnings, now): (&Warnings, Timestamp),
) -> Result<(), StatusError> {
    let name = meta(new, "name").to_owned();
    if let Some(known) = compiled::manifest(&name) {
        if let Some(other) = compiled::contradiction(known, new) {
            let why = format!("this kind is compiled in, and does not have {other}");
            return Err(StatusError::forbidden(definition, &name, &why));
        }
        for missing in compiled::missing(known, new) {
            warnings.add(format!("{name} keeps the definition of the box, without {missing}"));
        }
        new["spec"] = known["spec"].clone();
        crd::complete(new);
    }
    let others = others(txn, definition, &name)?;
    if old.is_none() {
        let dynamic = others.iter().filter(|one| compiled::manifest(meta(one, "name")).is_none());
        if dynamic.count() >= MAX_DEFINITIONS && compiled::manifest(&name).is_none() {
            let why = format!("there may be no more than {MAX_DEFINITIONS} definitions");
            return Err(StatusError::forbidden(definition, &name, &why));
        }
    }
    let taken = taken(&others, &new["spec"]["group"], &name);
    status::settle(new, &taken, now);
    Ok(())
}

/// Marks a definition for deletion: a finalizer stays until all objects of the kind are deleted.
///
/// # Errors
/// 403 for a compiled-in definition.
pub fn mark(
    definition: &ResourceDefinition,
    crd: &mut Value,
    now: Timestamp,
) -> Result<(), StatusError> {
    let name = meta(crd, "name").to_owned();
    if compiled::manifest(&name).is_some() {
        let why = "this kind is compiled in";
        return Err(StatusError::forbidden(definition, &name, why));
    }
    if crd["metadata"]["deletionTimestamp"].is_string() {
        return Ok(());
    }
    let finalizers = metadata_mut(crd).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(listed) = finalizers.as_array_mut().filter(|all| !all.contains(&json!(FINALIZER))) {
        listed.push(json!(FINALIZER));
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will \
        begin soon";
    status::set_condition(crd, "Terminating", true, "InstanceDeletionPending", message, now);
    Ok(())
}

/// Accepts waiting definitions whose requested names have become free, the oldest first.
///
/// # Errors
/// Returns an error if the definitions cannot be read from the store.
pub fn release(
    txn: &mut Txn<'_>,
    definition: &ResourceDefinition,
    now: Timestamp,
) -> Result<(), StatusError> {
    let mut all = others(txn, definition, "")?;
    // The oldest definition gets a free name first.
    all.sort_by_key(|one| meta(one, "creationTimestamp").to_owned());
    for at in 0..all.len() {
        let before = all[at].clone();
        if status::is(&before, "NamesAccepted") {
            continue;
        }
        let name = meta(&before, "name").to_owned();
        let taken = taken(&all, &before["spec"]["group"], &name);
        status::settle(&mut all[at], &taken, now);
        if all[at] != before {
            txn.put(key(&name), encode_own(definition, &all[at])?);
        }
    }
    Ok(())
}

/// Checks that the CustomResourceDefinition of `kind` has not changed since `kind` was read.
/// Otherwise the object was prepared by outdated rules.
///
/// # Errors
/// 404 if the definition was deleted, 429 if the definition changed.
pub fn check_current(txn: &Txn<'_>, kind: &ResourceDefinition) -> Result<(), StatusError> {
    let Some(origin) = kind.origin else { return Ok(()) };
    let stored = txn.get(&key(&kind.qualified()));
    match stored.map_err(|error| failed("read a definition", &error))? {
        Some(stored) if stored.revision == origin.revision => Ok(()),
        Some(_) => Err(StatusError::redefined()),
        None => Err(StatusError::no_such_resource()),
    }
}

fn taken(others: &[Value], group: &Value, name: &str) -> status::ReservedNames {
    let rivals = others.iter();
    let rivals = rivals.filter(|one| one["spec"]["group"] == *group && meta(one, "name") != name);
    status::ReservedNames::natively(group.as_str().unwrap_or_default()).and(rivals)
}

fn key(name: &str) -> Key {
    Key { resource: RESOURCE.to_owned(), namespace: String::new(), name: name.to_owned() }
}

fn others(
    txn: &Txn<'_>,
    definition: &ResourceDefinition,
    name: &str,
) -> Result<Vec<Value>, StatusError> {
    let stored = txn.list(RESOURCE, None).map_err(|error| failed("list definitions", &error))?;
    let others = stored.iter().filter(|(key, _)| key.name != name);
    others.map(|(_, stored)| decode(definition, stored)).collect()
}
