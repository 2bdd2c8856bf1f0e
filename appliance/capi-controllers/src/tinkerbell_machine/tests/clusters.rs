//! Tests of several machines and of several management clusters on one box.

use std::sync::Arc;

use api::bmc::JOB;
use api::core::ObjectEvent;
use api::infrastructure::{OWNER_NAME, OWNER_NAMESPACE, TINKERBELL_MACHINE};
use api::management_cluster::MANAGEMENT_CLUSTER;
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use controllers::runtime::Reconciler as _;
use jiff::Timestamp;
use objects::fake::Memory;
use objects::{ObjectError, Objects as _, Pending};
use serde_json::{Value, json};

use super::World;
use super::deletion::bmc;
use crate::tinkerbell_machine::decide::decide;
use crate::tinkerbell_machine::live_reads::LiveReads;
use machine_install::workflow::second_name;

/// Returns the unique ID of the management cluster that owns a Hardware, and its name for people.
fn owner(world: &World, host: &str) -> (Value, Value) {
    let metadata = &world.host(host)["metadata"];
    let uid = metadata["labels"]["tinbox.dev/management-cluster-uid"].clone();
    (uid, metadata["annotations"]["tinbox.dev/management-cluster"].clone())
}

#[tokio::test]
async fn another_cluster_under_a_former_name_gets_no_machine_of_the_former() {
    let world = World::paired();
    world.hardware("nuc1", json!({}));
    world.provision("worker").await;
    let host = world.host("nuc1");
    // Another cluster is paired as `prod`, with a machine of the same name.
    let other = World::paired_with("c2", &world.box_api);
    other.settle("worker").await.unwrap();
    let (_, reason, message) = other.condition("worker", "Ready");
    assert_eq!((&*reason, other.host("nuc1")), ("NoHardware", host.clone()), "{message}");
    assert!(
        message.contains("is in use by the machine default/worker of the management cluster prod"),
        "{message}"
    );
    // The deletion of that machine releases nothing.
    let key = ObjectKey::new("default", "worker");
    other.management.delete(TINKERBELL_MACHINE, &key).await.unwrap();
    let _ = other.settle("worker").await;
    assert_eq!(other.host("nuc1"), host);
    assert_eq!(other.box_api.names(WORKFLOW), ["worker"]);
}

#[tokio::test]
async fn a_cluster_that_is_paired_under_another_name_keeps_its_machines() {
    for is_provisioned in [true, false] {
        let mut world = World::paired();
        world.hardware("nuc1", json!({}));
        world.settle("worker").await.unwrap();
        if is_provisioned {
            world.provision("worker").await;
        }
        assert_eq!(owner(&world, "nuc1"), (json!("c1"), json!("prod")));
        let (status, reason, _) = world.condition("worker", "Ready");
        world.cluster.as_mut().unwrap().name = "fleet".to_owned();
        world.settle("worker").await.unwrap();
        assert_eq!(owner(&world, "nuc1"), (json!("c1"), json!("fleet")));
        let (new_status, new_reason, _) = world.condition("worker", "Ready");
        assert_eq!((new_status, new_reason), (status, reason));
    }
}

async fn delete(world: &World) {
    let key = ObjectKey::new("default", "worker");
    world.management.delete(TINKERBELL_MACHINE, &key).await.unwrap();
}

/// Completes a Job that switches a machine off.
fn end_job(world: &World, name: &str) {
    let mut job = world.box_api.peek(JOB, name).unwrap();
    job["status"] = json!({ "conditions": [{ "type": "Completed", "status": "True" }] });
    world.box_api.put(JOB, job);
}

#[tokio::test]
async fn machines_of_equal_names_are_installed_and_released_side_by_side() {
    let first = World::paired();
    let second = World::paired_with("c2", &first.box_api);
    first.hardware("nuc1", bmc());
    first.settle("worker").await.unwrap();
    first.hardware("nuc2", bmc());
    second.settle("worker").await.unwrap();
    let name = second_name(&ObjectKey::new("default", "worker"), Some("c2"));
    assert_eq!(first.box_api.names(WORKFLOW), ["worker", &name]);
    assert_eq!(first.box_api.names(TEMPLATE), ["worker", &name]);
    for (name, uid, host) in [("worker", "c1", "nuc1"), (&*name, "c2", "nuc2")] {
        let workflow = first.box_api.peek(WORKFLOW, name).unwrap();
        assert_eq!(workflow["spec"]["templateRef"], name);
        assert_eq!(workflow["spec"]["hardwareRef"], host);
        assert_eq!(workflow["metadata"]["labels"]["tinbox.dev/management-cluster-uid"], uid);
        assert_eq!(owner(&first, host).0, uid);
        first.set_workflow(name, json!({ "state": "SUCCESS" }));
    }
    for world in [&first, &second] {
        world.settle("worker").await.unwrap();
        assert_eq!(world.condition("worker", "Ready").0, "True");
        delete(world).await;
        world.settle("worker").await.unwrap();
        assert_eq!(world.condition("worker", "Ready").1, "PoweringOff");
    }
    let jobs = ["worker-poweroff".to_owned(), format!("{name}-poweroff")];
    assert_eq!(first.box_api.names(JOB), [&*jobs[1], &*jobs[0]]);
    let job = first.box_api.peek(JOB, &jobs[1]).unwrap();
    assert_eq!(job["metadata"]["labels"]["tinbox.dev/management-cluster-uid"], "c2");
    // The end of one Job proves nothing about the other machine.
    end_job(&first, &jobs[1]);
    first.settle("worker").await.unwrap();
    assert_eq!(first.condition("worker", "Ready").1, "PoweringOff");
    let _ = second.settle("worker").await;
    assert_eq!(first.box_api.names(JOB), jobs[..1]);
    assert_eq!((owner(&first, "nuc1").0, owner(&first, "nuc2").0), (json!("c1"), Value::Null));
    let annotations = &first.host("nuc2")["metadata"]["annotations"];
    assert_eq!(annotations["tinbox.dev/installation-name"], Value::Null);
    end_job(&first, &jobs[0]);
    let _ = first.settle("worker").await;
    assert!(first.management.peek(TINKERBELL_MACHINE, "worker").is_none());
    assert!([WORKFLOW, TEMPLATE, JOB].iter().all(|kind| first.box_api.names(*kind).is_empty()));
}

#[tokio::test]
async fn two_installations_that_begin_at_once_do_not_share_a_template() {
    let first = World::paired();
    let second = World::paired_with("c2", &first.box_api);
    first.hardware("nuc1", json!({}));
    first.hardware("nuc2", json!({}));
    let key = ObjectKey::new("default", "worker");
    // Both have decided before one of them writes.
    let mut decided = Vec::new();
    for world in [&first, &second] {
        let reconciler = world.reconciler();
        let (mut observed, _) = reconciler.decide(&key).await.unwrap();
        let mut metadata = observed.machine.metadata.clone();
        reconciler.claim(&mut observed, &mut metadata).await.unwrap();
        let observed = reconciler.observe(&key, LiveReads::default()).await.unwrap();
        decided.push((decide(&observed, Timestamp::UNIX_EPOCH), observed, reconciler));
    }
    let mut results = Vec::new();
    for (decision, observed, reconciler) in decided {
        let mut metadata = observed.machine.metadata.clone();
        let mut result = Ok(());
        for step in decision.steps {
            result = match result {
                Ok(()) => reconciler.apply(&observed, &mut metadata, step).await,
                error => error,
            };
        }
        results.push(result);
    }
    assert_eq!(results[0], Ok(()));
    assert!(matches!(results[1], Err(ObjectError::Conflict(_))), "{results:?}");
    assert_eq!(first.box_api.names(WORKFLOW), ["worker"]);
    second.settle("worker").await.unwrap();
    let name = second_name(&key, Some("c2"));
    assert_eq!(first.box_api.names(WORKFLOW), ["worker", &name]);
}

#[tokio::test]
async fn only_a_machine_that_names_its_hardware_takes_it_from_another_cluster() {
    let world = World::paired();
    world.hardware("nuc1", json!({}));
    world.provision("worker").await;
    for (spec, takes) in [
        // As in the founding guide: the provider ID is the name of the machine itself.
        (json!({ "providerID": "tinkerbell://worker" }), false),
        (json!({ "providerID": "tinkerbell://default/nuc2" }), false),
        (json!({ "hardwareName": "nuc1" }), false),
        (json!({ "providerID": "tinkerbell://worker", "hardwareName": "nuc1" }), true),
        (json!({ "providerID": "tinkerbell://nuc1" }), true),
        (json!({ "providerID": "tinkerbell://default/nuc1" }), true),
    ] {
        let other = World::paired_with("c2", &Arc::default());
        other.box_api.put(HARDWARE, world.host("nuc1"));
        let mut machine = other.get("worker");
        machine["spec"] = spec.clone();
        other.management.put(TINKERBELL_MACHINE, machine);
        other.settle("worker").await.unwrap();
        assert_eq!(owner(&other, "nuc1").0 == "c2", takes, "{spec}");
    }
}

#[tokio::test]
async fn a_hardware_follows_only_after_its_former_cluster_lost_the_machine() {
    let world = World::paired();
    world.hardware("nuc1", json!({}));
    world.provision("worker").await;
    let copy = world.get("worker");
    let other = World::paired_with("c2", &world.box_api);
    other.management.put(TINKERBELL_MACHINE, copy);
    let key = ObjectKey::new("default", "worker");
    let paired = json!({ "metadata": { "name": "prod", "namespace": "default" },
        "status": { "clusterUID": "c1" } });
    world.box_api.put(MANAGEMENT_CLUSTER, paired);
    // A cluster that is not connected, or that answers with an error, may have the machine.
    for is_connected in [false, true] {
        if is_connected {
            other.clusters.insert(Some("c1"), Arc::default(), Arc::new(Unreachable));
        }
        other.settle("worker").await.unwrap();
        assert_eq!(owner(&other, "nuc1").0, "c1");
    }
    // A restored backup, or the manifests of the other cluster: both clusters have the machine.
    other.clusters.insert(Some("c1"), Arc::default(), world.management.clone());
    other.settle("worker").await.unwrap();
    assert_eq!(owner(&other, "nuc1").0, "c1");
    let message = other.condition("worker", "HardwareClaimed").2;
    assert!(message.contains("of the management cluster prod"), "{message}");
    let mut gone = world.get("worker");
    gone["metadata"]["finalizers"] = json!([]);
    world.management.put(TINKERBELL_MACHINE, gone);
    world.management.delete(TINKERBELL_MACHINE, &key).await.unwrap();
    other.settle("worker").await.unwrap();
    assert_eq!(owner(&other, "nuc1").0, "c2");
}

#[tokio::test]
async fn a_moved_machine_that_is_deleted_early_waits_for_its_hardware() {
    let world = World::paired();
    world.hardware("nuc1", json!({}));
    world.provision("worker").await;
    let other = World::paired_with("c2", &world.box_api);
    other.management.put(TINKERBELL_MACHINE, world.get("worker"));
    other.clusters.insert(Some("c1"), Arc::default(), Arc::new(Unreachable));
    delete(&other).await;
    other.settle("worker").await.unwrap();
    let (_, reason, message) = other.condition("worker", "Ready");
    assert_eq!(reason, "FormerClusterUnread");
    assert!(message.contains("no route") && message.contains("unpair"), "{message}");
    // The box is unpaired from the former cluster.
    other.clusters.insert(Some("c1"), Arc::default(), Arc::new(Memory::default()));
    let _ = other.settle("worker").await;
    assert!(other.management.peek(TINKERBELL_MACHINE, "worker").is_none());
    assert_eq!(owner(&other, "nuc1").0, Value::Null);
}

/// API of a management cluster without a connection.
struct Unreachable;

fn unreachable<'a, T>() -> Pending<'a, T> {
    let (what, why) = ("the cluster".to_owned(), "no route".to_owned());
    Box::pin(async { Err(ObjectError::Unavailable { what, why, hint: None }) })
}

impl objects::Objects for Unreachable {
    fn get<'a>(&'a self, _: Resource, _: &'a ObjectKey) -> Pending<'a, Value> {
        unreachable()
    }

    fn list<'a>(&'a self, _: Resource, _: Option<&'a str>) -> Pending<'a, Vec<Value>> {
        unreachable()
    }

    fn create(&self, _: Resource, _: Value) -> Pending<'_, Value> {
        unreachable()
    }

    fn update(&self, _: Resource, _: Value) -> Pending<'_, Value> {
        unreachable()
    }

    fn update_status(&self, _: Resource, _: Value) -> Pending<'_, Value> {
        unreachable()
    }

    fn delete<'a>(&'a self, _: Resource, _: &'a ObjectKey) -> Pending<'a, ()> {
        unreachable()
    }

    fn delete_uid<'a>(&'a self, _: Resource, _: &'a ObjectKey, _: &'a str) -> Pending<'a, ()> {
        unreachable()
    }

    fn record(&self, _: ObjectEvent) {}
}

#[tokio::test]
async fn of_many_machines_each_gets_its_own_hardware_and_the_last_none() {
    let world = Arc::new(World::paired());
    let names: Vec<String> = (0..6).map(|at| format!("m{at}")).collect();
    for name in &names {
        world.machine(name);
    }
    for at in 0..5 {
        world.hardware(&format!("nuc{at}"), json!({}));
    }
    let runs = names.iter().cloned().map(|name| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.settle(&name).await })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap().unwrap();
    }
    let reasons: Vec<_> = names.iter().map(|name| world.condition(name, "Ready").1).collect();
    assert_eq!(reasons.iter().filter(|reason| *reason == "Installing").count(), 5, "{reasons:?}");
    let last = names.iter().find(|name| world.condition(name, "Ready").1 == "NoHardware").unwrap();
    assert!(world.condition(last, "HardwareClaimed").2.contains("5 are in use"), "{last}");
    let mut owners: Vec<_> = (0..5)
        .map(|at| {
            let host = world.host(&format!("nuc{at}"));
            host["metadata"]["labels"]["v1alpha1.tinkerbell.org/ownerName"].to_string()
        })
        .collect();
    owners.sort();
    owners.dedup();
    assert_eq!(owners.len(), 5);
    assert!(world.box_api.names(JOB).is_empty());
}

#[tokio::test]
async fn a_hardware_that_another_machine_is_about_to_claim_is_in_use() {
    let world = World::paired();
    world.hardware("nuc1", json!({}));
    let reconciler = world.reconciler();
    let labels = [(OWNER_NAME, "b"), (OWNER_NAMESPACE, "default")];
    let labels = labels.map(|(label, value)| (label.to_owned(), value.to_owned()));
    let key = ObjectKey::new("default", "nuc1");
    let (_, reservation) = reconciler.reservations.reserve(labels.into(), |_| ((), Some(key)));
    let worker = ObjectKey::new("default", "worker");
    reconciler.reconcile(&worker).await.unwrap();
    let message = world.condition("worker", "HardwareClaimed").2;
    assert!(message.contains("in use by the machine default/b"), "{message}");
    drop(reservation);
    reconciler.reconcile(&worker).await.unwrap();
    assert_eq!(owner(&world, "nuc1").0, "c1");
}
