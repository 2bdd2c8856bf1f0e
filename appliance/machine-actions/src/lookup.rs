//! Objects of a machine, found by the name that an interface shows.

use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{HARDWARE, Hardware, WORKFLOW, Workflow};
use objects::{ObjectError, Objects, read};
use serde_json::Value;

use crate::error::ActionError;

/// Maximum attempts of a change that conflicts with changes by other clients.
pub(crate) const TRIES_MAX: usize = 4;

/// Returns the Hardware with this name; `None` if there is none.
///
/// # Errors
/// Several namespaces have such a Hardware, or Hardware cannot be read.
pub(crate) async fn hardware(
    objects: &dyn Objects,
    name: &str,
) -> Result<Option<Value>, ActionError> {
    let mut named = objects.list(HARDWARE, None).await?;
    named.retain(|object| object["metadata"]["name"] == name);
    if named.len() > 1 {
        let keys: Vec<String> = named.iter().map(|it| key(it).to_string()).collect();
        return Err(ActionError::Ambiguous { name: name.to_owned(), keys: keys.join(", ") });
    }
    Ok(named.pop())
}

/// Returns the Hardware with this name as its type.
///
/// # Errors
/// There is no such Hardware, or it cannot be read, as in [`hardware`].
pub(crate) async fn machine(objects: &dyn Objects, name: &str) -> Result<Hardware, ActionError> {
    let object = hardware(objects, name).await?;
    let object = object.ok_or_else(|| ActionError::NoMachine(name.to_owned()))?;
    Ok(read(object)?)
}

/// Returns the workflow `name` of a machine.
///
/// # Errors
/// The workflow does not exist or belongs to another machine.
pub(crate) async fn workflow(
    objects: &dyn Objects,
    machine: &Hardware,
    name: &str,
) -> Result<Workflow, ActionError> {
    let key = ObjectKey::new(&machine.metadata.namespace, name);
    let found: Option<Workflow> = objects::find(objects, WORKFLOW, &key).await?;
    let found = found.ok_or_else(|| ActionError::NoWorkflow(name.to_owned()))?;
    if found.spec.hardware_ref != machine.metadata.name {
        return Err(ActionError::OtherMachine {
            workflow: name.to_owned(),
            machine: machine.metadata.name.clone(),
        });
    }
    Ok(found)
}

/// Changes an object, and repeats the change after a conflict with another client.
///
/// # Errors
/// The object cannot be read or written, or the conflicts do not end.
pub async fn change(
    objects: &dyn Objects,
    resource: Resource,
    key: &ObjectKey,
    edit: impl Fn(&mut Value),
) -> Result<(), ObjectError> {
    let mut tries = 1;
    loop {
        let mut object = objects.get(resource, key).await?;
        edit(&mut object);
        match objects.update(resource, object).await {
            Err(ObjectError::Conflict(_)) if tries < TRIES_MAX => tries += 1,
            done => return done.map(drop),
        }
    }
}

/// Creates an object of a request. An object with this name is of the same request, sent again.
///
/// # Errors
/// The API refuses the object or cannot store it.
pub(crate) async fn create_once(
    objects: &dyn Objects,
    resource: Resource,
    object: Value,
) -> Result<(), ObjectError> {
    match objects.create(resource, object).await {
        Ok(_) | Err(ObjectError::AlreadyExists(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

pub(crate) fn key(object: &Value) -> ObjectKey {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"))
}
