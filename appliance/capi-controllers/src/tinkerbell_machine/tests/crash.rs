//! Tests that stop the box after each write, and continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::core::ObjectEvent;
use api::infrastructure::TINKERBELL_MACHINE;
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use objects::fake::Memory;
use objects::{ObjectError, Objects, Pending};
use serde_json::{Value, json};

use super::World;
use controllers::runtime::{Reconciler as _, Requeue};

/// Objects whose writes fail after a number of writes, as after a power cut.
struct PowerCut {
    memory: Arc<Memory>,
    writes_left: Arc<AtomicUsize>,
}

impl PowerCut {
    fn write<'a, T: Send + 'a>(&'a self, write: Pending<'a, T>) -> Pending<'a, T> {
        let one_less = |left: usize| left.checked_sub(1);
        match self.writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) {
            Ok(_) => write,
            Err(_) => Box::pin(async { Err(ObjectError::Internal("power cut".to_owned())) }),
        }
    }
}

impl Objects for PowerCut {
    fn get<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, Value> {
        self.memory.get(resource, key)
    }

    fn list<'a>(
        &'a self,
        resource: Resource,
        namespace: Option<&'a str>,
    ) -> Pending<'a, Vec<Value>> {
        self.memory.list(resource, namespace)
    }

    fn create(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        self.write(self.memory.create(resource, object))
    }

    fn update(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        self.write(self.memory.update(resource, object))
    }

    fn update_status(&self, resource: Resource, object: Value) -> Pending<'_, Value> {
        self.write(self.memory.update_status(resource, object))
    }

    fn delete<'a>(&'a self, resource: Resource, key: &'a ObjectKey) -> Pending<'a, ()> {
        self.write(self.memory.delete(resource, key))
    }

    fn delete_uid<'a>(
        &'a self,
        resource: Resource,
        key: &'a ObjectKey,
        uid: &'a str,
    ) -> Pending<'a, ()> {
        self.write(self.memory.delete_uid(resource, key, uid))
    }

    fn record(&self, happening: ObjectEvent) {
        self.memory.record(happening);
    }
}

/// Reconciles until the machine is at rest. Returns true if the power was cut before.
async fn until_cut(world: &World, name: &str, writes: &Arc<AtomicUsize>) -> bool {
    let cut = |memory: &Arc<Memory>| {
        Arc::new(PowerCut { memory: memory.clone(), writes_left: Arc::clone(writes) })
    };
    let reconciler = world.reconciler_on(cut(&world.management), cut(&world.box_api));
    let key = ObjectKey::new("default", name);
    loop {
        match reconciler.reconcile(&key).await {
            Ok(Requeue::After(wait)) if wait.as_secs() < 1 => {}
            Ok(_) | Err(ObjectError::NotFound(_)) => return false,
            Err(ObjectError::Internal(_)) => return true,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Returns all objects without the fields that depend on the number of writes.
fn state(world: &World, name: &str) -> Vec<Value> {
    let objects = [
        world.management.peek(TINKERBELL_MACHINE, name),
        world.box_api.peek(HARDWARE, "nuc1"),
        world.box_api.peek(TEMPLATE, name),
        world.box_api.peek(WORKFLOW, name),
    ];
    let plain = |object: Option<Value>| {
        let mut object = object.unwrap_or_default();
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata {
            metadata.retain(|field, _| !["resourceVersion", "uid"].contains(&&**field));
        }
        object
    };
    objects.into_iter().map(plain).collect()
}

/// Runs a life of a machine with a power cut after `writes` writes. Returns the end state, and true
/// if the power was cut.
async fn live(world: &World, name: &str, writes: usize) -> (Vec<Value>, bool) {
    let left = Arc::new(AtomicUsize::new(writes));
    let mut was_cut = false;
    for phase in ["install", "succeed", "delete"] {
        match phase {
            "succeed" => world.set_workflow(name, json!({ "state": "SUCCESS" })),
            "delete" => {
                let provisioned = state(world, name);
                assert_eq!(provisioned[0]["status"]["ready"], true, "{provisioned:?}");
                let key = ObjectKey::new("default", name);
                world.management.delete(TINKERBELL_MACHINE, &key).await.unwrap();
            }
            _ => {}
        }
        while until_cut(world, name, &left).await {
            was_cut = true;
            left.store(usize::MAX, Ordering::SeqCst);
        }
    }
    (state(world, name), was_cut)
}

#[tokio::test]
async fn a_power_cut_after_any_write_changes_nothing_of_the_end_state() {
    for name in ["nuc-control-plane-1", "worker"] {
        let world = || match name {
            "worker" => {
                let world = World::paired();
                world.hardware("nuc1", json!({}));
                world
            }
            _ => World::guide(),
        };
        let (expected, _) = live(&world(), name, usize::MAX).await;
        assert_eq!(expected[0], Value::Null, "the machine is deleted");
        assert_eq!(expected[1]["metadata"]["labels"], json!({}));
        let mut writes = 0;
        loop {
            let (found, was_cut) = live(&world(), name, writes).await;
            assert_eq!(found, expected, "after {writes} writes");
            if !was_cut {
                break;
            }
            writes += 1;
        }
        assert!(writes > 10, "only {writes} writes");
    }
}
