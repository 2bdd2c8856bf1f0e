//! Objects of the API for the box's own programs, under the conflict rules of every other client.
//!
//! Never: a store, HTTP, a rule about a kind. Enter at [`Objects`], [`fetch`] and
//! [`write_status`]; tests of others at [`fake::Memory`].

pub mod fake;

use std::future::Future;
use std::pin::Pin;

use api::core::Happening;
use api::meta::{ObjectKey, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A boxed future, so that [`Objects`] can be a trait object.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ObjectError>> + Send + 'a>>;

/// Why an object could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// There is none of that name.
    #[error("{0} not found")]
    NotFound(String),
    /// Somebody wrote it in between: observe again.
    #[error("{0} was changed in between")]
    Conflict(String),
    /// There is one of that name already.
    #[error("{0} exists already")]
    AlreadyExists(String),
    /// The API refuses it.
    #[error("{0}")]
    Invalid(String),
    /// The stored object is not of the shape its kind has.
    #[error("cannot read {what}: {why}")]
    Unreadable {
        /// Kind and name.
        what: String,
        /// The decoder's words.
        why: String,
    },
    /// The store failed.
    #[error("{0}")]
    Internal(String),
}

/// Get, list, create, patch and delete objects. Implemented over the embedded store, and one day
/// over a remote Kubernetes API.
pub trait Objects: Send + Sync + 'static {
    /// One object.
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value>;
    /// All objects of a kind, in a namespace or everywhere.
    fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>>;
    /// Create; the object carries its name and namespace.
    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value>;
    /// Replace everything but the status; `object` carries the resource version it was read at.
    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value>;
    /// Replace the status; `object` carries the resource version it was read at.
    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value>;
    /// Delete.
    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()>;
    /// Remember that something happened. Never waits; may be dropped under load.
    fn record(&self, happening: Happening);
}

/// One object as its type.
///
/// # Errors
/// As [`Objects::get`]; [`ObjectError::Unreadable`] when the stored object has another shape.
pub async fn fetch<T: DeserializeOwned>(
    objects: &dyn Objects,
    resource: Resource,
    key: &ObjectKey,
) -> Result<T, ObjectError> {
    read(objects.get(resource, key).await?)
}

/// Like [`fetch`], with `None` where there is no such object.
///
/// # Errors
/// As [`fetch`], less [`ObjectError::NotFound`].
pub async fn find<T: DeserializeOwned>(
    objects: &dyn Objects,
    resource: Resource,
    key: &ObjectKey,
) -> Result<Option<T>, ObjectError> {
    match fetch(objects, resource, key).await {
        Ok(object) => Ok(Some(object)),
        Err(ObjectError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A stored object as its type.
///
/// # Errors
/// [`ObjectError::Unreadable`].
pub fn read<T: DeserializeOwned>(object: Value) -> Result<T, ObjectError> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("?").to_owned();
    let what = format!("{} {}", text("/kind"), text("/metadata/name"));
    serde_json::from_value(object)
        .map_err(|error| ObjectError::Unreadable { what, why: error.to_string() })
}

/// What was to be changed or removed is not there any more: nothing is left to be done.
///
/// # Errors
/// Every other one.
pub fn gone_is_fine(result: Result<(), ObjectError>) -> Result<(), ObjectError> {
    match result {
        Err(ObjectError::NotFound(_)) => Ok(()),
        result => result,
    }
}

/// Replace the status of an object that was read at `metadata`'s resource version.
///
/// # Errors
/// [`ObjectError::Conflict`] when somebody wrote it in between.
pub async fn write_status<T: Serialize>(
    objects: &dyn Objects,
    resource: Resource,
    metadata: &api::meta::ObjectMeta,
    status: &T,
) -> Result<(), ObjectError> {
    let status = serde_json::to_value(status)
        .map_err(|error| ObjectError::Internal(format!("cannot write a status: {error}")))?;
    let object = serde_json::json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        },
        "status": status,
    });
    objects.update_status(resource, object).await.map(drop)
}
