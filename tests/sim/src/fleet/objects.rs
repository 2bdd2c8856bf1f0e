//! The product's object store. For the box, writes are slow and may fail. A write in progress when
//! the box dies may or may not take effect.

use std::sync::{Arc, LazyLock, Weak};

use api::core::{EVENT, ObjectEvent};
use api::meta::{ObjectKey, Resource};
use objects::{ObjectError, Objects as _, Pending};
use provisioning::objects::{EngineObjects, id};
use resources::{Engine, ListOptions, Patch, Registry, WriteOptions, builtin};
use serde_json::Value;
use stdx::Clock;
use tempfile::TempDir;

use super::incident::Actor;
use super::plan::NAMESPACE;
use super::time::at_once;
use super::world::World;

/// Maximum size of the store's log in bytes: small, because the store's file is in memory.
const LOG_BYTES: u64 = 8 << 20;

/// All stored objects, which survive a kill of the box.
pub struct Objects {
    /// Engine of the API.
    pub engine: Engine,
    /// Store of the engine.
    pub store: store::Store,
    /// Folder of the store.
    pub folder: TempDir,
}

/// Part of an object that a write replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Spec,
    Status,
}

fn key_of(object: &Value) -> ObjectKey {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
    ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"))
}

/// The compiled-in kinds without their definitions, which take long to store.
static KINDS: LazyLock<Registry> = LazyLock::new(|| {
    let all = builtin::registry().expect("a test of its own proves that no kinds collide");
    let kinds = all.all().iter().filter(|it| it.kind != "CustomResourceDefinition");
    let kinds = kinds.map(|it| it.as_ref().clone()).collect();
    Registry::new(kinds).expect("these kinds do not collide")
});

impl Objects {
    /// Returns an empty store; `clock` gives the creation time of objects.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        // In memory: on a real disk, each write would wait for the disk.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a folder can be made");
        let options = store::Options {
            log_bytes: LOG_BYTES,
            clock: Arc::clone(&clock),
            ..store::Options::default()
        };
        let store = store::Store::open(&folder.path().join("objects.redb"), options);
        let store = store.expect("a store can be made");
        let engine = Engine::new(store.clone(), KINDS.clone(), clock);
        at_once(engine.ensure_permanent()).expect("an empty store takes writes");
        Self { engine, store, folder }
    }

    /// Returns one object, now and without delay.
    pub fn peek(&self, resource: Resource, key: &ObjectKey) -> Option<Value> {
        at_once(self.engine.get(&id(resource), &key.namespace, &key.name)).ok()
    }

    /// Creates an object without delay or fault.
    ///
    /// # Panics
    /// The API refuses the object.
    pub fn put(&self, resource: Resource, object: Value) {
        let options = WriteOptions::default();
        let created = at_once(self.engine.create(&id(resource), NAMESPACE, object, options));
        created.unwrap_or_else(|error| panic!("{} is refused: {error}", resource.kind));
    }

    /// Changes an object as its owner does, by a merge patch without a version check.
    ///
    /// # Panics
    /// The API refuses the change.
    pub fn patch(&self, resource: Resource, key: &ObjectKey, patch: Value) {
        let (id, options) = (id(resource), WriteOptions::default());
        let patch = Patch::merge(patch).expect("it is an object");
        let patched = self.engine.patch(&id, &key.namespace, &key.name, patch, options);
        at_once(patched).unwrap_or_else(|error| panic!("a change of {key} is refused: {error}"));
    }

    /// Events about an object: the reason, the message and the number of times.
    pub fn events(&self, kind: &str, name: &str) -> Vec<(String, String, usize)> {
        let listed = at_once(self.engine.list(&id(EVENT), None, ListOptions::default()));
        let mut events = listed.expect("the store can be read").items;
        events.retain(|event| {
            let about = &event["involvedObject"];
            about["kind"] == kind && about["name"] == name
        });
        let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let times = |event: &Value| event["count"].as_u64().unwrap_or(1).try_into().unwrap_or(1);
        let events = events.iter();
        events.map(|it| (text(it, "reason"), text(it, "message"), times(it))).collect()
    }
}

/// The store as the box reaches it, with delays and faults.
pub struct Store {
    /// World with the faults.
    pub world: Weak<World>,
    /// The product's access to the store.
    pub inner: EngineObjects,
}

impl Store {
    fn world(&self) -> Result<Arc<World>, ObjectError> {
        self.world.upgrade().ok_or_else(|| ObjectError::Internal("the simulation is over".into()))
    }

    /// Runs `write` after a delay. May report an error, with or without the effect of the write.
    async fn write<T>(
        &self,
        write: impl FnOnce(&World) -> Result<T, ObjectError>,
    ) -> Result<T, ObjectError> {
        let world = self.world()?;
        let fails = world.chance.of_hundred(world.chance.faults().writes);
        let failed = || Err(ObjectError::Internal("the disk said no".into()));
        world.chance.delay().await;
        if world.outages.is_full(world.elapsed()) {
            world.count(|summary| summary.failed_writes += 1);
            return Err(ObjectError::Internal("No space left on device".into()));
        }
        if fails && world.chance.coin() {
            world.count(|summary| summary.failed_writes += 1);
            return failed();
        }
        world.step(Actor::Box, "a write is due").await;
        let written = write(&world)?;
        world.count(|summary| summary.writes += 1);
        world.step(Actor::Box, "a write took effect").await;
        world.chance.delay().await;
        if fails {
            world.count(|summary| summary.failed_writes += 1);
            return failed();
        }
        Ok(written)
    }

    async fn replace(
        &self,
        resource: Resource,
        object: Value,
        part: Part,
    ) -> Result<Value, ObjectError> {
        let key = key_of(&object);
        let replace = |world: &World| {
            if part == Part::Spec {
                return at_once(self.inner.update(resource, object));
            }
            let before = world.objects.peek(resource, &key);
            // A write succeeds only on the version that it read, so `before` is that version.
            let after = at_once(self.inner.update_status(resource, object))?;
            if let Some(before) = before.filter(|_| resource == api::tinkerbell::WORKFLOW) {
                world.ledger().committed(&before, &after);
            }
            Ok(after)
        };
        self.write(replace).await
    }
}

impl objects::Objects for Store {
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        self.inner.get(resource, key)
    }

    fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>> {
        self.inner.list(resource, namespace)
    }

    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(self.write(move |_| at_once(self.inner.create(resource, object))))
    }

    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(self.replace(resource, object, Part::Spec))
    }

    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(self.replace(resource, object, Part::Status))
    }

    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()> {
        Box::pin(self.write(move |_| at_once(self.inner.delete(resource, key))))
    }

    fn delete_uid<'a>(
        &'a self,
        resource: Resource,
        key: &'a ObjectKey,
        uid: &'a str,
    ) -> Pending<'a, ()> {
        Box::pin(self.write(move |_| at_once(self.inner.delete_uid(resource, key, uid))))
    }

    fn record(&self, event: ObjectEvent) {
        self.inner.record(event);
    }
}
