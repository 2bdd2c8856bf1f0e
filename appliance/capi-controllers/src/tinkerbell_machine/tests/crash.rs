//! Tests that stop the box after each write, and continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use api::bmc::JOB;
use api::infrastructure::TINKERBELL_MACHINE;
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use objects::fake::Memory;
use objects::{ObjectError, Objects as _};
use serde_json::{Value, json};

use super::deletion::bmc;
use super::guarded::{Call, Guard, Guarded};
use super::{STEPS_MAX, World};
use controllers::runtime::{Reconciler as _, Requeue};
use machine_install::workflow::second_name;

/// Number of writes until all further ones fail, as after a power cut.
struct PowerCut(Arc<AtomicUsize>);

impl Guard for PowerCut {
    fn check(&self, call: &Call<'_>) -> Result<(), ObjectError> {
        if matches!(call, Call::Read) {
            return Ok(());
        }
        let one_less = |left: usize| left.checked_sub(1);
        let counted = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        counted.map(drop).map_err(|_| ObjectError::Internal("power cut".to_owned()))
    }
}

/// Reconciles until the machine is at rest. Returns true if the power was cut before.
async fn until_cut(world: &World, name: &str, writes: &Arc<AtomicUsize>) -> bool {
    let cut = |memory: &Arc<Memory>| {
        Arc::new(Guarded { memory: memory.clone(), guard: PowerCut(Arc::clone(writes)) })
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
fn state(world: &World, life: &Life) -> Vec<Value> {
    let mut objects = vec![world.management.peek(TINKERBELL_MACHINE, life.machine)];
    for resource in [HARDWARE, TEMPLATE, WORKFLOW, JOB] {
        let names = world.box_api.names(resource);
        objects.extend(names.iter().map(|name| world.box_api.peek(resource, name)));
    }
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

/// Completes all Jobs that switch a machine off, and all Workflows that erase disks.
fn end_runs(world: &World) {
    for name in world.box_api.names(WORKFLOW).iter().filter(|name| name.contains("-wipe-")) {
        world.set_workflow(name, json!({ "state": "SUCCESS" }));
    }
    for name in world.box_api.names(JOB) {
        let mut job = world.box_api.peek(JOB, &name).unwrap();
        job["status"] = json!({ "conditions": [{ "type": "Completed", "status": "True" }] });
        world.box_api.put(JOB, job);
    }
}

/// Life of a machine until its deletion.
struct Life {
    machine: &'static str,
    /// Name of the Workflow that installs the machine; `None` for a machine that runs.
    workflow: Option<String>,
}

/// Runs a life of a machine with a power cut after `writes` writes. Returns the end state, and true
/// if the power was cut.
async fn live(world: &World, life: &Life, writes: usize) -> (Vec<Value>, bool) {
    let left = Arc::new(AtomicUsize::new(writes));
    let was_cut = Arc::new(AtomicBool::new(false));
    let settle = async || {
        while until_cut(world, life.machine, &left).await {
            was_cut.store(true, Ordering::SeqCst);
            left.store(usize::MAX, Ordering::SeqCst);
        }
    };
    settle().await;
    if let Some(workflow) = &life.workflow {
        world.set_workflow(workflow, json!({ "state": "SUCCESS" }));
        settle().await;
    }
    let provisioned = world.get(life.machine);
    assert_eq!(provisioned["status"]["ready"], true, "{provisioned}");
    let key = ObjectKey::new("default", life.machine);
    world.management.delete(TINKERBELL_MACHINE, &key).await.unwrap();
    for _ in 0..STEPS_MAX {
        settle().await;
        if world.management.peek(TINKERBELL_MACHINE, life.machine).is_none() {
            break;
        }
        end_runs(world);
    }
    (state(world, life), was_cut.load(Ordering::SeqCst))
}

/// Checks that a power cut after any write leads to the end state of a life without a power cut.
async fn check(world: impl AsyncFn() -> World, life: Life) -> Vec<Value> {
    let (expected, _) = live(&world().await, &life, usize::MAX).await;
    assert_eq!(expected[0], Value::Null, "the machine is deleted");
    let mut writes = 0;
    loop {
        let (found, was_cut) = live(&world().await, &life, writes).await;
        assert_eq!(found, expected, "after {writes} writes");
        if !was_cut {
            break;
        }
        writes += 1;
    }
    assert!(writes > 10, "only {writes} writes");
    expected
}

#[tokio::test]
async fn a_power_cut_after_any_write_changes_nothing_of_the_end_state() {
    let machine = "nuc-control-plane-1";
    let life = Life { machine, workflow: Some(machine.to_owned()) };
    let end = check(async || World::guide(), life).await;
    assert_eq!((end.len(), &end[1]["metadata"]["labels"]), (2, &json!({})));
    for (bmc, wipe) in [(json!({}), "None"), (bmc(), "None"), (bmc(), "Auto")] {
        let world = async || {
            let world = World::paired();
            world.hardware("nuc1", bmc.clone());
            let mut machine = world.get("worker");
            machine["spec"]["wipeOnRelease"] = json!(wipe);
            world.management.put(TINKERBELL_MACHINE, machine);
            world
        };
        let life = Life { machine: "worker", workflow: Some("worker".to_owned()) };
        let end = check(world, life).await;
        assert_eq!((end.len(), &end[1]["metadata"]["labels"]), (2, &json!({})));
    }
}

/// Creates a box with a provisioned machine `worker` of the cluster `c1`, and returns the cluster
/// `c2` with a machine of the same name and a Hardware for it.
async fn second_cluster() -> World {
    let first = World::paired();
    first.hardware("nuc1", bmc());
    first.provision("worker").await;
    let second = World::paired_with("c2", &first.box_api);
    second.hardware("nuc2", bmc());
    second
}

#[tokio::test]
async fn a_power_cut_does_not_mix_machines_of_equal_names() {
    let before = second_cluster().await;
    let workflow = Some(second_name(&ObjectKey::new("default", "worker"), Some("c2")));
    let end = check(second_cluster, Life { machine: "worker", workflow }).await;
    // The Hardware, the Template and the Workflow of the first machine, and the free Hardware.
    let first = Life { machine: "worker", workflow: None };
    let [_, nuc1, _, template, workflow] = &state(&before, &first)[..] else { panic!("{end:?}") };
    assert_eq!(end.len(), 5, "{end:?}");
    assert_eq!((&end[1], &end[3], &end[4]), (nuc1, template, workflow));
    assert_eq!(end[2]["metadata"]["labels"], json!({}));
}

#[tokio::test]
async fn a_power_cut_during_a_move_leaves_no_object_behind() {
    let world = async || {
        let source = second_cluster().await;
        source.settle("worker").await.unwrap();
        let name = second_name(&ObjectKey::new("default", "worker"), Some("c2"));
        source.set_workflow(&name, json!({ "state": "SUCCESS" }));
        source.settle("worker").await.unwrap();
        // A power-off Job of the former owner, as after an interrupted deletion in the source.
        let workflow = source.box_api.peek(WORKFLOW, &name).unwrap();
        let labels = &workflow["metadata"]["labels"];
        let name = format!("{name}-poweroff");
        let metadata = json!({ "name": name, "namespace": "default", "labels": labels });
        source.box_api.put(JOB, json!({ "metadata": metadata }));
        let mut copy = source.get("worker");
        copy["status"] = json!({});
        copy["metadata"]["uid"] = json!("another");
        let target = World::paired_with("c3", &source.box_api);
        target.management.put(TINKERBELL_MACHINE, copy);
        target
    };
    let end = check(world, Life { machine: "worker", workflow: None }).await;
    let first = state(&second_cluster().await, &Life { machine: "worker", workflow: None });
    assert_eq!((&end[1], &end[3..]), (&first[1], &first[3..]));
    assert_eq!(end[2]["metadata"]["labels"], json!({}));
}
