//! Access of the controllers to the embedded store.

pub mod recorder;
pub mod references;

use api::core::ObjectEvent;
use api::meta::{ObjectKey, Resource};
use objects::{ObjectError, Objects, Pending};
use resources::{DeleteOptions, Engine, ListOptions, Reason, StatusError, WriteOptions};
use serde_json::Value;

use crate::objects::recorder::Recorder;

/// Implementation of [`Objects`] on the engine of the API server. Controllers and API clients thus
/// have the same rules.
pub struct EngineObjects {
    /// Engine that stores and validates objects.
    pub engine: Engine,
    /// Recorder of Kubernetes Events.
    pub recorder: Recorder,
}

/// Returns the engine's ID of a kind: `group/plural`.
pub fn id(resource: Resource) -> String {
    format!("{}/{}", resource.group, resource.plural)
}

/// Converts an error of the engine to an error for controllers.
pub fn error(error: StatusError) -> ObjectError {
    match error.reason {
        Reason::NotFound => ObjectError::NotFound(error.message),
        Reason::Conflict => ObjectError::Conflict(error.message),
        Reason::AlreadyExists => ObjectError::AlreadyExists(error.message),
        Reason::InternalError | Reason::Timeout | Reason::TooManyRequests => {
            ObjectError::Internal(error.message)
        }
        _ => ObjectError::Invalid(error.message),
    }
}

fn text(object: &Value, path: &str) -> String {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl EngineObjects {
    async fn write(
        &self,
        resource: Resource,
        object: Value,
        options: WriteOptions,
    ) -> Result<Value, ObjectError> {
        let namespace = text(&object, "/metadata/namespace");
        let name = text(&object, "/metadata/name");
        self.engine.update(&id(resource), &namespace, &name, object, options).await.map_err(error)
    }

    async fn remove(
        &self,
        resource: Resource,
        key: &ObjectKey,
        options: DeleteOptions,
    ) -> Result<(), ObjectError> {
        let deleted = self.engine.delete(&id(resource), &key.namespace, &key.name, options).await;
        deleted.map(drop).map_err(error)
    }
}

impl Objects for EngineObjects {
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        Box::pin(async move {
            self.engine.get(&id(resource), &key.namespace, &key.name).await.map_err(error)
        })
    }

    fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>> {
        Box::pin(async move {
            let list = self.engine.list(&id(resource), namespace, ListOptions::default()).await;
            list.map(|list| list.items).map_err(error)
        })
    }

    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(async move {
            let namespace = text(&object, "/metadata/namespace");
            let options = WriteOptions::default();
            self.engine.create(&id(resource), &namespace, object, options).await.map_err(error)
        })
    }

    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(self.write(resource, object, WriteOptions::default()))
    }

    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(self.write(resource, object, WriteOptions::status()))
    }

    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()> {
        Box::pin(self.remove(resource, key, DeleteOptions::default()))
    }

    fn delete_uid<'a>(
        &'a self,
        resource: Resource,
        key: &'a ObjectKey,
        uid: &'a str,
    ) -> Pending<'a, ()> {
        let uid = Some(uid.to_owned());
        Box::pin(self.remove(resource, key, DeleteOptions { uid, ..DeleteOptions::default() }))
    }

    fn record(&self, object_event: ObjectEvent) {
        self.recorder.record(object_event);
    }
}
