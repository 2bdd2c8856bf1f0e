//! Objects of the box for the actions on machines.

use std::sync::{Mutex, PoisonError};

use api::core::ObjectEvent;
use api::meta::{ObjectKey, Resource};
use objects::{ObjectError, Objects, Pending};
use serde_json::Value;

use super::{Client, Path};
use crate::error::ClientError;

/// Access to objects under the rights of the kubeconfig's user.
pub struct ApiObjects {
    client: Client,
    /// Latest error that is not about an object; it says more than an [`ObjectError`] can.
    failure: Mutex<Option<ClientError>>,
}

impl ApiObjects {
    /// Creates the access over a client of the box.
    pub fn new(client: Client) -> Self {
        Self { client, failure: Mutex::default() }
    }

    /// Takes the error of the client that ended an action; `None` if there was none.
    pub fn failure(&self) -> Option<ClientError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn error(&self, what: &Path, error: ClientError) -> ObjectError {
        let name = what.to_string();
        match &error {
            ClientError::Refused { code: 404, .. } => ObjectError::NotFound(name),
            ClientError::Refused { code: 409, reason, .. } if reason == "AlreadyExists" => {
                ObjectError::AlreadyExists(name)
            }
            ClientError::Refused { code: 409, .. } => ObjectError::Conflict(name),
            ClientError::Refused { code: 400 | 422, message, .. } => {
                ObjectError::Invalid(message.clone())
            }
            _ => {
                let why = stdx::chain(&error);
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                ObjectError::Unavailable { what: name, why, hint: None }
            }
        }
    }

    async fn remove(
        &self,
        resource: Resource,
        key: &ObjectKey,
        uid: &str,
    ) -> Result<(), ObjectError> {
        let path = path_of(resource, key);
        let done = self.client.delete(&path, uid).await;
        done.map(drop).map_err(|error| self.error(&path, error))
    }
}

fn path_of(resource: Resource, key: &ObjectKey) -> Path {
    Path::object(resource, &key.namespace, &key.name)
}

fn key_of(object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    ObjectKey::new(text("namespace"), text("name"))
}

/// Adds the kind to an object of a list, which has it only once for all.
fn with_kind(resource: Resource, mut object: Value) -> Value {
    object["apiVersion"] = resource.api_version().into();
    object["kind"] = resource.kind.into();
    object
}

impl Objects for ApiObjects {
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        Box::pin(async move {
            let path = path_of(resource, key);
            self.client.get(&path).await.map_err(|error| self.error(&path, error))
        })
    }

    fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>> {
        Box::pin(async move {
            let path = Path::collection(resource, namespace.unwrap_or_default());
            let list = self.client.list(&path, "").await;
            let (items, _) = list.map_err(|error| self.error(&path, error))?;
            Ok(items.into_iter().map(|item| with_kind(resource, item)).collect())
        })
    }

    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(async move {
            let key = key_of(&object);
            let made =
                self.client.create(&Path::collection(resource, &key.namespace), &object).await;
            made.map_err(|error| self.error(&path_of(resource, &key), error))
        })
    }

    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(async move {
            let path = path_of(resource, &key_of(&object));
            let changed = self.client.replace(&path, &object).await;
            changed.map_err(|error| self.error(&path, error))
        })
    }

    /// Status is written by the box alone.
    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        let name = path_of(resource, &key_of(&object)).to_string();
        let refused = format!("cannot write the status of {name}: only the box does");
        Box::pin(std::future::ready(Err(ObjectError::Invalid(refused))))
    }

    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()> {
        Box::pin(async move {
            let object = self.get(resource, key).await?;
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            self.remove(resource, key, &uid).await
        })
    }

    fn delete_uid<'a>(
        &'a self,
        resource: Resource,
        key: &'a ObjectKey,
        uid: &'a str,
    ) -> Pending<'a, ()> {
        Box::pin(self.remove(resource, key, uid))
    }

    /// Does nothing: actions record no events.
    fn record(&self, _: ObjectEvent) {}
}
