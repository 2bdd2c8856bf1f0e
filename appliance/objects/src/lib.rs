//! Access to objects of the API for parts of the box, under the same conflict rules as other
//! clients.
//!
//! Never: a store, HTTP, a rule about a kind. Enter at [`Objects`], [`fetch`] and [`write_status`];
//! tests of other crates use [`fake::Memory`].

pub mod fake;

use std::future::Future;
use std::pin::Pin;

use api::core::ObjectEvent;
use api::meta::{ObjectKey, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Boxed future, so that [`Objects`] can be a trait object.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ObjectError>> + Send + 'a>>;

/// Error of reading or writing an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// No object has this name.
    #[error("{0} not found")]
    NotFound(String),
    /// The object was changed since it was read: read it again, then try again.
    #[error("{0} was changed at the same time")]
    Conflict(String),
    /// An object of this name exists.
    #[error("{0} exists already")]
    AlreadyExists(String),
    /// The API refuses the object as not valid.
    #[error("{0}")]
    Invalid(String),
    /// The stored object does not have the fields of its kind.
    #[error("cannot read {what}: {why}")]
    Unreadable {
        /// Kind and name of the object.
        what: String,
        /// Message of the decoder.
        why: String,
    },
    /// The store failed, with its error.
    #[error("{0}")]
    Internal(String),
}

/// Reads, creates, changes and deletes objects. Implemented over the embedded store; a remote
/// Kubernetes API is possible later.
pub trait Objects: Send + Sync + 'static {
    /// Reads one object by its key.
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value>;
    /// Lists all objects of a kind, in one namespace or in all.
    fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>>;
    /// Creates an object; it contains its name and namespace.
    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value>;
    /// Replaces everything except the status. `object` contains the resource version that was read.
    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value>;
    /// Replaces the status. `object` contains the resource version that was read.
    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value>;
    /// Deletes an object; finalizers may delay its removal.
    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()>;
    /// Records an event without waiting. Events may be dropped under load.
    fn record(&self, happening: ObjectEvent);
}

/// Reads an object into its type.
///
/// # Errors
/// The errors of [`Objects::get`]; [`ObjectError::Unreadable`] when the object does not have the
/// fields of its kind.
pub async fn fetch<T: DeserializeOwned>(
    objects: &dyn Objects,
    resource: Resource,
    key: &ObjectKey,
) -> Result<T, ObjectError> {
    read(objects.get(resource, key).await?)
}

/// Reads an object like [`fetch`]; `None` if it does not exist.
///
/// # Errors
/// The errors of [`fetch`], except [`ObjectError::NotFound`].
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

/// Converts a stored object to its type.
///
/// # Errors
/// [`ObjectError::Unreadable`].
pub fn read<T: DeserializeOwned>(object: Value) -> Result<T, ObjectError> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("?").to_owned();
    let what = format!("{} {}", text("/kind"), text("/metadata/name"));
    serde_json::from_value(object)
        .map_err(|error| ObjectError::Unreadable { what, why: error.to_string() })
}

/// Accepts that the object of a change or deletion does not exist any more.
///
/// # Errors
/// Every error except [`ObjectError::NotFound`].
pub fn gone_is_fine(result: Result<(), ObjectError>) -> Result<(), ObjectError> {
    match result {
        Err(ObjectError::NotFound(_)) => Ok(()),
        result => result,
    }
}

/// Replaces the status of an object that was read at `metadata`'s resource version.
///
/// # Errors
/// [`ObjectError::Conflict`] when another client has changed the object since then.
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
