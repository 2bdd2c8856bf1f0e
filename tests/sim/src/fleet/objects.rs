//! The object store: in memory, with the API's conflict rules. Writes are slow and may fail. A
//! write in progress when the box dies may or may not take effect.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use api::core::ObjectEvent;
use api::meta::{ObjectKey, Resource};
use objects::{ObjectError, Pending};
use serde_json::{Value, json};
use stdx::Clock;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::incident::Actor;
use super::world::World;

/// Changes that a watch may lag behind; a reader takes all pending changes at once.
const CHANGES_MAX: usize = 1 << 16;

/// An object that changed: its new value, or `None` when it was deleted.
pub type Change = (Resource, ObjectKey, Option<Value>);

/// All stored objects and the watches on them.
pub struct Objects(Mutex<Tables>);

struct Tables {
    objects: BTreeMap<(&'static str, ObjectKey), Value>,
    revision: u64,
    clock: Arc<dyn Clock>,
    watchers: Vec<mpsc::Sender<Change>>,
}

/// Part of an object that a write replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Spec,
    Status,
}

/// True when finalizers keep an object that is being deleted.
fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
}

fn key_of(object: &Value) -> ObjectKey {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
    ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"))
}

impl Objects {
    /// Returns an empty store; `clock` gives the creation time of objects.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (objects, watchers) = (BTreeMap::new(), Vec::new());
        Self(Mutex::new(Tables { objects, revision: 0, clock, watchers }))
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches every later change.
    pub fn watch(&self) -> mpsc::Receiver<Change> {
        let (sender, receiver) = mpsc::channel(CHANGES_MAX);
        self.tables().watchers.push(sender);
        receiver
    }

    /// Returns all objects of a kind, now and without delay.
    pub fn all(&self, resource: Resource) -> Vec<Value> {
        let tables = self.tables();
        let of_kind = tables.objects.iter().filter(|((plural, _), _)| *plural == resource.plural);
        of_kind.map(|(_, object)| object.clone()).collect()
    }

    /// Returns one object, now and without delay.
    pub fn peek(&self, resource: Resource, key: &ObjectKey) -> Option<Value> {
        self.tables().objects.get(&(resource.plural, key.clone())).cloned()
    }

    /// Creates an object without delay or fault.
    pub fn put(&self, resource: Resource, object: Value) -> Result<Value, ObjectError> {
        let key = key_of(&object);
        let mut tables = self.tables();
        if tables.objects.contains_key(&(resource.plural, key.clone())) {
            return Err(ObjectError::AlreadyExists(key.to_string()));
        }
        Ok(tables.commit(resource, key, object))
    }

    /// Changes an object as its owner does, without a version check.
    pub fn edit(&self, resource: Resource, key: &ObjectKey, edit: impl FnOnce(&mut Value)) {
        let mut tables = self.tables();
        let Some(mut object) = tables.objects.get(&(resource.plural, key.clone())).cloned() else {
            return;
        };
        edit(&mut object);
        tables.commit(resource, key.clone(), object);
    }

    fn replace(
        &self,
        resource: Resource,
        new: Value,
        part: Part,
    ) -> Result<[Value; 2], ObjectError> {
        let key = key_of(&new);
        let mut tables = self.tables();
        let before = tables
            .objects
            .get(&(resource.plural, key.clone()))
            .cloned()
            .ok_or_else(|| ObjectError::NotFound(key.to_string()))?;
        if before["metadata"]["resourceVersion"] != new["metadata"]["resourceVersion"] {
            return Err(ObjectError::Conflict(key.to_string()));
        }
        let mut after = before.clone();
        match part {
            Part::Status => after["status"] = new["status"].clone(),
            Part::Spec => {
                after["spec"] = new["spec"].clone();
                let finalizers = new["metadata"].get("finalizers").cloned();
                after["metadata"]["finalizers"] = finalizers.unwrap_or_else(|| json!([]));
            }
        }
        let ends = !after["metadata"]["deletionTimestamp"].is_null() && !is_held(&after);
        let after = tables.commit(resource, key.clone(), after);
        if ends {
            tables.objects.remove(&(resource.plural, key.clone()));
            tables.tell((resource, key, None));
        }
        Ok([before, after])
    }

    fn remove(&self, resource: Resource, key: &ObjectKey) -> Result<(), ObjectError> {
        let mut tables = self.tables();
        let place = (resource.plural, key.clone());
        let object = tables.objects.get(&place).cloned();
        let mut object = object.ok_or_else(|| ObjectError::NotFound(key.to_string()))?;
        if is_held(&object) {
            object["metadata"]["deletionTimestamp"] = json!(tables.clock.now());
            tables.commit(resource, key.clone(), object);
        } else {
            tables.objects.remove(&place);
            tables.tell((resource, key.clone(), None));
        }
        Ok(())
    }
}

impl Tables {
    fn commit(&mut self, resource: Resource, key: ObjectKey, mut object: Value) -> Value {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{}", self.revision));
            object["metadata"]["creationTimestamp"] = json!(self.clock.now());
        }
        self.objects.insert((resource.plural, key.clone()), object.clone());
        self.tell((resource, key, Some(object.clone())));
        object
    }

    fn tell(&mut self, change: Change) {
        self.watchers.retain(|watcher| match watcher.try_send(change.clone()) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(_)) => panic!("a watch is {CHANGES_MAX} changes behind"),
        });
    }
}

/// The store as the box reaches it, with delays and faults.
pub struct Store(pub Weak<World>);

impl Store {
    fn world(&self) -> Result<Arc<World>, ObjectError> {
        self.0.upgrade().ok_or_else(|| ObjectError::Internal("the simulation is over".into()))
    }

    /// Runs `write` after a delay, and may report an error although it took effect.
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
        let replace = |world: &World| {
            let [before, after] = world.objects.replace(resource, object, part)?;
            if resource == api::tinkerbell::WORKFLOW && part == Part::Status {
                world.ledger().committed(&before, &after);
            }
            Ok(after)
        };
        self.write(replace).await
    }
}

impl objects::Objects for Store {
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        Box::pin(async move {
            let world = self.world()?;
            let object = world.objects.peek(resource, key);
            object.ok_or_else(|| ObjectError::NotFound(key.to_string()))
        })
    }

    fn list<'a>(&'a self, resource: Resource, _: Option<&'a str>) -> Pending<'a, Vec<Value>> {
        Box::pin(async move { Ok(self.world()?.objects.all(resource)) })
    }

    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(self.write(move |world| world.objects.put(resource, object)))
    }

    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(self.replace(resource, object, Part::Spec))
    }

    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        Box::pin(self.replace(resource, object, Part::Status))
    }

    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()> {
        Box::pin(self.write(move |world| world.objects.remove(resource, key)))
    }

    fn record(&self, event: ObjectEvent) {
        if let Ok(world) = self.world() {
            world.history().events.push((event.name, event.reason));
        }
    }
}
