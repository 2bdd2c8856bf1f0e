//! Access of the box's parts to API objects, under the same conflict rules as other clients.
//!
//! This crate must never contain a store, HTTP, or a rule about a kind. Enter at [`Objects`],
//! [`fetch`] and [`write_status`], or in tests of other crates at [`fake::Memory`].

pub mod fake;

use std::future::Future;
use std::pin::Pin;

use api::core::ObjectEvent;
use api::meta::{ObjectKey, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stdx::Hint;

/// Future of a method of [`Objects`]; boxed, so that [`Objects`] can be a trait object.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ObjectError>> + Send + 'a>>;

/// Error of reading or writing an API object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// The object does not exist.
    #[error("{0} not found")]
    NotFound(String),
    /// Another client changed the object after it was read: read again, then repeat the change.
    #[error("another client changed {0} at the same time")]
    Conflict(String),
    /// An object with this name already exists.
    #[error("{0} exists already")]
    AlreadyExists(String),
    /// The API rejects the object as invalid.
    #[error("{0}")]
    Invalid(String),
    /// The stored object does not have the fields of its kind.
    #[error("cannot read {what}: {why}")]
    Unreadable {
        /// Kind and name of the object.
        what: String,
        /// Error message of the JSON decoder.
        why: String,
    },
    /// A remote API cannot be reached, or refuses its client. The error says nothing about objects:
    /// a caller must never conclude that an object is gone.
    #[error("cannot reach {what}: {why}")]
    Unavailable {
        /// Kind of the objects, and their name or namespace.
        what: String,
        /// Response of the server, or the error of the connection with its causes.
        why: String,
        /// Advice for the person who reads the error.
        hint: Option<&'static str>,
    },
    /// The store failed; the text is the error of the store.
    #[error("{0}")]
    Internal(String),
}

impl Hint for ObjectError {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Unavailable { hint, .. } => *hint,
            _ => None,
        }
    }
}

/// Interface to read, create, change and delete API objects. The embedded store and a client of a
/// remote Kubernetes API implement it.
pub trait Objects: Send + Sync + 'static {
    /// Reads one object by its key.
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value>;
    /// Lists all objects of a kind in `namespace`, or in all namespaces for `None`.
    fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>>;
    /// Creates an object. `object` contains its name and namespace.
    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value>;
    /// Replaces all fields except the status. `object` contains the resource version that was read.
    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value>;
    /// Replaces the status. `object` must contain the resource version that was read.
    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value>;
    /// Deletes an object. Finalizers may delay the removal.
    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()>;
    /// Deletes an object like [`Objects::delete`] if its UID is `uid`. A later object of the same
    /// name stays, and is an [`ObjectError::Conflict`].
    fn delete_uid<'a>(
        &'a self,
        resource: Resource,
        key: &'a ObjectKey,
        uid: &'a str,
    ) -> Pending<'a, ()>;
    /// Records an event without waiting. Under load, events may be dropped.
    fn record(&self, happening: ObjectEvent);
}

/// Reads an object and converts it to the type `T`.
///
/// # Errors
/// The object cannot be read (as in [`Objects::get`]), or lacks the fields of its kind
/// ([`ObjectError::Unreadable`]).
pub async fn fetch<T: DeserializeOwned>(
    objects: &dyn Objects,
    resource: Resource,
    key: &ObjectKey,
) -> Result<T, ObjectError> {
    read(objects.get(resource, key).await?)
}

/// Reads an object like [`fetch`]; returns `None` if the object does not exist.
///
/// # Errors
/// The object exists, but cannot be read, as in [`fetch`].
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

/// Converts a stored object to the type `T`.
///
/// # Errors
/// The object lacks the fields of its kind ([`ObjectError::Unreadable`]).
pub fn read<T: DeserializeOwned>(object: Value) -> Result<T, ObjectError> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("?").to_owned();
    let what = format!("{} {}", text("/kind"), text("/metadata/name"));
    serde_json::from_value(object)
        .map_err(|error| ObjectError::Unreadable { what, why: error.to_string() })
}

/// Converts [`ObjectError::NotFound`] to success, for a change or deletion of an object that may be
/// deleted already.
///
/// # Errors
/// The result is an error other than [`ObjectError::NotFound`].
pub fn gone_is_fine(result: Result<(), ObjectError>) -> Result<(), ObjectError> {
    match result {
        Err(ObjectError::NotFound(_)) => Ok(()),
        result => result,
    }
}

/// Replaces the status of the object that was read with `metadata`.
///
/// # Errors
/// The object was changed after it was read ([`ObjectError::Conflict`]), or the write fails.
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
