//! Tests of several machines and of several management clusters on one box.

use std::sync::Arc;

use api::bmc::JOB;
use api::infrastructure::TINKERBELL_MACHINE;
use api::meta::ObjectKey;
use api::tinkerbell::WORKFLOW;
use objects::Objects as _;
use serde_json::{Value, json};

use super::World;

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
    assert!(message.contains("is in use by the machine default/worker"), "{message}");
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
