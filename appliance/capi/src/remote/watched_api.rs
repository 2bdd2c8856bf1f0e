//! API of a management cluster whose reads are answered by the copies of the watchers.
//!
//! A read is answered by the server while the watch of the kind does not work, or if the copy lacks
//! the object. So only the server ever reports an object as missing. Kinds that are not watched,
//! such as Secrets, are always read from the server and never kept.

use std::sync::Arc;

use api::core::ObjectEvent;
use api::meta::{ObjectKey, Resource};
use objects::{ObjectError, Objects, Pending};
use serde_json::Value;

use super::{RemoteObjects, WatchedObjects};

/// API of a management cluster with the copies of its watchers.
///
/// A read by [`WatchedApi::live`] or [`WatchedApi::watched`] never returns an older state of an
/// object than an earlier response did.
#[derive(Clone)]
pub struct WatchedApi {
    remote: RemoteObjects,
    copies: Arc<[WatchedObjects]>,
    /// True to answer reads from the copies.
    reads_copies: bool,
}

impl WatchedApi {
    /// Creates an API whose reads are answered by the server.
    pub fn live(remote: &RemoteObjects, copies: Vec<WatchedObjects>) -> Self {
        Self { remote: remote.clone(), copies: copies.into(), reads_copies: false }
    }

    /// Returns the same API with reads that are answered by the copies, and so may be older than
    /// the objects of the server: by the delay of the watch, or until a broken connection is
    /// detected. Not for decisions that cannot be taken back.
    pub fn watched(&self) -> Self {
        Self { reads_copies: true, ..self.clone() }
    }

    fn copy(&self, resource: Resource) -> Option<&WatchedObjects> {
        self.copies.iter().find(|it| it.resource() == resource)
    }

    /// Returns the response, and keeps its object until the watch is as new.
    fn keep(
        &self,
        resource: Resource,
        response: Result<Value, ObjectError>,
    ) -> Result<Value, ObjectError> {
        if let (Ok(object), Some(copy)) = (&response, self.copy(resource)) {
            copy.answered(object);
        }
        response
    }
}

impl Objects for WatchedApi {
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        Box::pin(async move {
            let copy = self.copy(resource).filter(|_| self.reads_copies);
            match copy.and_then(|copy| copy.current(key)) {
                Some(object) => Ok(Value::clone(&object)),
                None => self.keep(resource, self.remote.get(resource, key).await),
            }
        })
    }

    fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>> {
        let copy = self.copy(resource).filter(|_| self.reads_copies);
        match copy.and_then(|copy| copy.all_current(namespace)) {
            Some(all) => {
                Box::pin(async move { Ok(all.iter().map(|it| Value::clone(it)).collect()) })
            }
            None => self.remote.list(resource, namespace),
        }
    }

    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        self.remote.create(resource, object)
    }

    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(async move { self.keep(resource, self.remote.update(resource, object).await) })
    }

    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(
            async move { self.keep(resource, self.remote.update_status(resource, object).await) },
        )
    }

    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()> {
        self.remote.delete(resource, key)
    }

    fn delete_uid<'a>(
        &'a self,
        resource: Resource,
        key: &'a ObjectKey,
        uid: &'a str,
    ) -> Pending<'a, ()> {
        self.remote.delete_uid(resource, key, uid)
    }

    fn record(&self, happening: ObjectEvent) {
        self.remote.record(happening);
    }
}

#[cfg(test)]
mod tests;
