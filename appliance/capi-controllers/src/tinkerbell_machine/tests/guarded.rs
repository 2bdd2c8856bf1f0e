//! Objects in memory behind a guard, which may refuse each call.

use std::sync::Arc;

use api::core::ObjectEvent;
use api::meta::{ObjectKey, Resource};
use objects::fake::Memory;
use objects::{ObjectError, Objects, Pending};
use serde_json::Value;

/// Call that a guard checks.
pub enum Call<'a> {
    Read,
    Create(Resource, &'a Value),
    /// Write to an object that exists.
    Write,
}

/// Rule of a test, such as a power cut after a number of writes.
pub trait Guard: Send + Sync + 'static {
    /// Returns the error of a call that is refused.
    fn check(&self, call: &Call<'_>) -> Result<(), ObjectError>;
}

/// Objects behind a guard.
pub struct Guarded<G> {
    pub memory: Arc<Memory>,
    pub guard: G,
}

impl<G: Guard> Guarded<G> {
    fn pass<'a, T: Send + 'a>(&self, call: &Call<'_>, work: Pending<'a, T>) -> Pending<'a, T> {
        match self.guard.check(call) {
            Ok(()) => work,
            Err(error) => Box::pin(async { Err(error) }),
        }
    }
}

impl<G: Guard> Objects for Guarded<G> {
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        self.pass(&Call::Read, self.memory.get(resource, key))
    }

    fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>> {
        self.pass(&Call::Read, self.memory.list(resource, namespace))
    }

    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        match self.guard.check(&Call::Create(resource, &object)) {
            Ok(()) => self.memory.create(resource, object),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        self.pass(&Call::Write, self.memory.update(resource, object))
    }

    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        self.pass(&Call::Write, self.memory.update_status(resource, object))
    }

    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()> {
        self.pass(&Call::Write, self.memory.delete(resource, key))
    }

    fn delete_uid<'a>(
        &'a self,
        resource: Resource,
        key: &'a ObjectKey,
        uid: &'a str,
    ) -> Pending<'a, ()> {
        self.pass(&Call::Write, self.memory.delete_uid(resource, key, uid))
    }

    fn record(&self, happening: ObjectEvent) {
        self.memory.record(happening);
    }
}
