//! Client of the Kubernetes API of a management cluster: [`RemoteObjects`] for controllers, and a
//! [`Watcher`] for each kind that signals them.
//!
//! This module must never report an object as missing because of a failed connection, a missing
//! right or a response of another server, and never use a program or file named in a kubeconfig.

mod connection;
mod event_writer;
mod failure;
mod kubeconfig;
mod list;
mod path;
mod server_clock;
mod token_request;
mod watched_api;
mod watcher;

use api::core::ObjectEvent;
use api::meta::{ObjectKey, Resource};
use http::Request;
use jiff::Timestamp;
use kube::api::{DeleteParams, GetParams, PostParams, Preconditions};
use objects::{ObjectError, Objects, Pending};
use serde_json::Value;

use self::connection::Connection;
use self::failure::{Failure, Subject};

pub use self::event_writer::EventWriter;
pub use self::failure::Cause;
#[cfg(test)]
pub use self::failure::hints;
pub use self::kubeconfig::{Kubeconfig, KubeconfigError};
pub use self::list::{OBJECTS_MAX, Scope};
pub use self::watched_api::WatchedApi;
pub use self::watcher::{WatchError, WatchState, WatchedObjects, Watcher};

/// Manager of the fields that the box writes.
const FIELD_MANAGER: &str = "tinbox";

/// Implementation of [`Objects`] on the API of a management cluster; clones share its connections.
#[derive(Clone)]
pub struct RemoteObjects {
    connection: Connection,
    events: event_writer::Queue,
}

impl RemoteObjects {
    /// Creates a client, and the task that writes its events. The first request connects.
    ///
    /// # Errors
    /// The client certificate does not match its key.
    ///
    /// # Panics
    /// The caller is not inside a Tokio runtime.
    pub fn new(kubeconfig: &Kubeconfig) -> Result<(Self, EventWriter), KubeconfigError> {
        Ok(Self::of(Connection::new(kubeconfig)?))
    }

    fn of(connection: Connection) -> (Self, EventWriter) {
        let (events, writer) = event_writer::queue(connection.clone());
        (Self { connection, events }, writer)
    }

    /// Reads a document of the API that is not an object, such as `/version`.
    ///
    /// # Errors
    /// The document cannot be read.
    pub async fn document(&self, path: &'static str) -> Result<Value, ObjectError> {
        let kind = Resource { group: "", version: "v1", kind: path, plural: "" };
        let subject = Subject { resource: kind, key: ObjectKey::default() };
        let request = Request::get(path).body(Vec::new());
        let request = request.map_err(kube::core::request::Error::BuildRequest);
        send(&self.connection, &subject, request).await
    }

    /// Returns the time by the clock of the API server; `None` before its first response.
    pub fn server_time(&self) -> Option<Timestamp> {
        self.connection.clock().now()
    }

    /// Replaces an object, or only its status.
    async fn replace(
        &self,
        resource: Resource,
        object: Value,
        is_status: bool,
    ) -> Result<Value, ObjectError> {
        let subject = Subject::object(resource, &list::key(&object));
        let revision = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        // Without a version, the API server replaces some built-in kinds unconditionally.
        if revision.is_none_or(str::is_empty) {
            return Err(ObjectError::Invalid(format!("{subject} has no resource version")));
        }
        let (request, name) = (request(&subject)?, subject.key.name.as_str());
        let (body, options) = (encode(&subject, &object)?, options());
        let request = if is_status {
            request.replace_subresource("status", name, &options, body)
        } else {
            request.replace(name, &options, body)
        };
        exchange(&self.connection, &subject, request).await
    }

    async fn remove(
        &self,
        resource: Resource,
        key: &ObjectKey,
        options: DeleteParams,
    ) -> Result<(), ObjectError> {
        let subject = Subject::object(resource, key);
        let request = request(&subject)?.delete(&key.name, &options);
        let body = send(&self.connection, &subject, request).await?;
        // The object if finalizers delay its removal, else a Status.
        if body["kind"] == resource.kind || body["status"] == "Success" {
            return Ok(());
        }
        Err(failure::of_unexpected(&subject, "the result of a deletion", &body.to_string()))
    }
}

type Built = Result<Request<Vec<u8>>, kube::core::request::Error>;

/// Starts a request about an object, after a check of its name.
fn request(subject: &Subject) -> Result<kube::core::Request, ObjectError> {
    path::parent(subject.resource, &subject.key).map(kube::core::Request::new)
}

fn options() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), dry_run: false }
}

fn encode(subject: &Subject, object: &Value) -> Result<Vec<u8>, ObjectError> {
    serde_json::to_vec(object)
        .map_err(|error| ObjectError::Internal(format!("cannot encode {subject}: {error}")))
}

async fn create(
    connection: &Connection,
    resource: Resource,
    object: &Value,
) -> Result<Value, ObjectError> {
    let subject = Subject::object(resource, &list::key(object));
    let body = encode(&subject, object)?;
    let request = request(&subject)?.create(&options(), body);
    exchange(connection, &subject, request).await
}

/// Sends a request whose response is the object itself.
async fn exchange(
    connection: &Connection,
    subject: &Subject,
    request: Built,
) -> Result<Value, ObjectError> {
    let mut object = send(connection, subject, request).await?;
    if list::complete(subject.resource, &mut object) && list::key(&object) == subject.key {
        return Ok(object);
    }
    // The body of a Secret must not get into an error message.
    let is_secret = subject.resource.kind == "Secret";
    let found = if is_secret { "another object".to_owned() } else { object.to_string() };
    Err(failure::of_unexpected(subject, &subject.to_string(), &found))
}

async fn send(
    connection: &Connection,
    subject: &Subject,
    request: Built,
) -> Result<Value, ObjectError> {
    let request = request.map_err(|error| {
        ObjectError::Internal(format!("cannot request {subject}: {}", stdx::chain(&error)))
    })?;
    connection.call(subject, request).await.map_err(Failure::into)
}

impl Objects for RemoteObjects {
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        Box::pin(async move {
            let subject = Subject::object(resource, key);
            let request = request(&subject)?.get(&key.name, &GetParams::default());
            exchange(&self.connection, &subject, request).await
        })
    }

    fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>> {
        Box::pin(async move {
            let namespace = namespace.unwrap_or_default().to_owned();
            let scope = Scope { namespace, ..Scope::all(resource) };
            let list = list::list(&self.connection, &scope).await;
            list.map(|list| list.items).map_err(Failure::into)
        })
    }

    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(async move { create(&self.connection, resource, &object).await })
    }

    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(self.replace(resource, object, false))
    }

    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(self.replace(resource, object, true))
    }

    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()> {
        Box::pin(self.remove(resource, key, DeleteParams::default()))
    }

    fn delete_uid<'a>(
        &'a self,
        resource: Resource,
        key: &'a ObjectKey,
        uid: &'a str,
    ) -> Pending<'a, ()> {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let options =
            DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        Box::pin(self.remove(resource, key, options))
    }

    fn record(&self, happening: ObjectEvent) {
        self.events.push(happening);
    }
}

#[cfg(test)]
pub(crate) mod tests;
