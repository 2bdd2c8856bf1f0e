//! Tests of the rule that nothing is installed, erased or switched off without a present request.

use api::bmc::JOB;
use api::infrastructure::TINKERBELL_MACHINE;
use api::infrastructure::cluster_api::{CLUSTER, MACHINE};
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use objects::Objects as _;
use serde_json::{Value, json};

use super::World;
use controllers::runtime::Reconciler as _;
use machine_install::workflow::second_name;

fn bmc() -> Value {
    json!({ "bmcRef": { "kind": "Machine", "name": "bmc1" } })
}

async fn provisioned() -> World {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    world.provision("worker").await;
    world
}

async fn delete(world: &World) {
    let key = ObjectKey::new("default", "worker");
    world.management.delete(TINKERBELL_MACHINE, &key).await.unwrap();
}

/// Checks that the box created no Workflow and no Job, and permits no network boot.
#[track_caller]
fn assert_untouched(world: &World, host: &Value) {
    assert!(world.box_api.names(JOB).is_empty());
    assert!(world.box_api.names(WORKFLOW).len() <= 1);
    assert_eq!(world.host("nuc1")["spec"], host["spec"]);
    let provisioned = "v1alpha1.tinkerbell.org/provisioned";
    assert_eq!(world.host("nuc1")["metadata"]["annotations"][provisioned], "true");
}

#[tokio::test]
async fn a_paused_cluster_or_machine_is_left_alone_even_when_deleted() {
    for case in ["cluster", "machine"] {
        let world = provisioned().await;
        if case == "cluster" {
            world.put(CLUSTER, "demo", json!({ "spec": { "paused": true } }));
        } else {
            let mut machine = world.get("worker");
            machine["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/paused": "" });
            world.management.put(TINKERBELL_MACHINE, machine);
        }
        let host = world.host("nuc1");
        delete(&world).await;
        world.settle("worker").await.unwrap();
        assert_eq!(world.condition("worker", "Paused").0, "True", "{case}");
        assert_untouched(&world, &host);
    }
}

#[tokio::test]
async fn a_move_to_another_management_cluster_keeps_the_machine() {
    let world = provisioned().await;
    let host = world.host("nuc1");
    let copy = world.get("worker");
    let mut source = copy.clone();
    let moved = json!({ "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
    source["metadata"]["annotations"] = moved;
    world.management.put(TINKERBELL_MACHINE, source);
    delete(&world).await;
    world.settle("worker").await.unwrap();
    assert_untouched(&world, &host);
    // The target is another cluster. The object has no status and another UID.
    let target = World::paired_with("c2", &world.box_api);
    let mut moved = copy;
    moved["status"] = json!({});
    moved["metadata"]["uid"] = json!("another");
    target.management.put(TINKERBELL_MACHINE, moved);
    target.settle("worker").await.unwrap();
    assert_eq!(target.condition("worker", "Ready").0, "True");
    assert_untouched(&target, &host);
    let owner = &target.host("nuc1")["metadata"]["labels"]["tinbox.dev/management-cluster-uid"];
    assert_eq!(owner, "c2");
    for resource in [WORKFLOW, TEMPLATE] {
        let labels = &target.box_api.peek(resource, "worker").unwrap()["metadata"]["labels"];
        assert_eq!(labels["tinbox.dev/management-cluster-uid"], "c2");
    }
}

#[tokio::test]
async fn objects_that_vanish_or_return_from_a_backup_touch_no_machine() {
    let world = provisioned().await;
    let host = world.host("nuc1");
    let backup = world.get("worker");
    // As after a deleted namespace or removed finalizers.
    let mut bare = backup.clone();
    bare["metadata"]["finalizers"] = json!([]);
    world.management.put(TINKERBELL_MACHINE, bare);
    delete(&world).await;
    let _ = world.settle("worker").await;
    assert_untouched(&world, &host);
    // A backup from before the installation has no provider ID and no status.
    let mut old = backup.clone();
    old["status"] = json!({});
    old["spec"] = json!({ "osImage": "ubuntu-20.04" });
    world.management.put(TINKERBELL_MACHINE, old);
    world.settle("worker").await.unwrap();
    assert_eq!(world.condition("worker", "Ready").0, "True");
    assert_eq!(world.get("worker")["spec"]["providerID"], "tinkerbell://default/nuc1");
    assert_untouched(&world, &host);
}

#[tokio::test]
async fn a_known_provider_id_adopts_hardware_that_the_box_has_forgotten() {
    for (case, id) in [
        ("long form", "tinkerbell://default/nuc1"),
        ("short form", "tinkerbell://nuc1"),
        ("own name", "tinkerbell://worker"),
    ] {
        let world = World::paired();
        let is_own = case == "own name";
        world.hardware(if is_own { "worker" } else { "nuc1" }, bmc());
        let mut machine = world.get("worker");
        machine["spec"]["providerID"] = json!(id);
        if is_own {
            // Only Cluster API knows that the machine is not a new one.
            let spec = json!({ "clusterName": "demo", "providerID": id });
            world.put(MACHINE, "worker", json!({ "spec": spec }));
        }
        world.management.put(TINKERBELL_MACHINE, machine);
        world.settle("worker").await.unwrap();
        assert_eq!(world.condition("worker", "Ready").0, "True", "{case}");
        assert!(world.box_api.names(WORKFLOW).is_empty(), "{case}");
        assert!(world.box_api.names(JOB).is_empty(), "{case}");
    }
}

#[tokio::test]
async fn a_provider_id_of_another_box_takes_no_hardware_of_this_box() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    let mut machine = world.get("worker");
    machine["spec"]["providerID"] = json!("tinkerbell://other-box/nuc9");
    world.management.put(TINKERBELL_MACHINE, machine);
    world.settle("worker").await.unwrap();
    let (_, reason, message) = world.condition("worker", "Ready");
    assert_eq!(reason, "HardwareRequestInvalid");
    assert!(message.contains("other-box/nuc9"), "{message}");
    assert_eq!(world.host("nuc1")["metadata"]["labels"], Value::Null);
}

#[tokio::test]
async fn a_provisioned_machine_without_its_hardware_is_reported() {
    let world = provisioned().await;
    let mut host = world.host("nuc1");
    host["metadata"]["finalizers"] = json!([]);
    world.box_api.put(HARDWARE, host);
    world.box_api.delete(HARDWARE, &ObjectKey::new("default", "nuc1")).await.unwrap();
    world.hardware("nuc2", bmc());
    world.settle("worker").await.unwrap();
    let (status, reason, _) = world.condition("worker", "Ready");
    assert_eq!((&*status, &*reason), ("False", "HardwareRequestInvalid"));
    assert_eq!(world.get("worker")["status"]["ready"], true, "provisioned never changes back");
    assert_eq!(world.host("nuc2")["metadata"]["labels"], Value::Null);
}

#[tokio::test]
async fn objects_of_another_watch_filter_are_ignored() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    let mut reconciler = world.reconciler();
    reconciler.view.watch_filter = Some("rack-b".to_owned());
    reconciler.reconcile(&ObjectKey::new("default", "worker")).await.unwrap();
    assert_eq!(world.get("worker")["status"], Value::Null);
    assert_eq!(world.host("nuc1")["metadata"]["labels"], Value::Null);
}

#[tokio::test]
async fn the_machine_of_another_box_is_left_alone_even_when_deleted() {
    let world = provisioned().await;
    assert_eq!(world.get("worker")["metadata"]["annotations"]["tinbox.dev/box"], "id-1");
    let host = world.host("nuc1");
    let before = world.get("worker");
    let mut other = world.reconciler();
    other.box_id = "id-2".to_owned();
    let key = ObjectKey::new("default", "worker");
    other.reconcile(&key).await.unwrap();
    assert_eq!(world.get("worker"), before);
    delete(&world).await;
    other.reconcile(&key).await.unwrap();
    let finalizers = &world.get("worker")["metadata"]["finalizers"];
    assert_eq!(finalizers.as_array().unwrap().len(), 1, "the other box removes no finalizer");
    assert_untouched(&world, &host);
}

#[tokio::test]
async fn a_box_without_hardware_does_not_take_a_machine_from_other_boxes() {
    let world = World::paired();
    world.settle("worker").await.unwrap();
    assert_eq!(world.condition("worker", "Ready").1, "NoHardware");
    assert_eq!(world.get("worker")["metadata"]["annotations"], Value::Null);
    // Another box reports the same reason: the message of the first box stays.
    let before = world.get("worker");
    let mut other = world.reconciler();
    (other.box_id, other.box_name) = ("id-2".to_owned(), "box2".to_owned());
    other.reconcile(&ObjectKey::new("default", "worker")).await.unwrap();
    assert_eq!(world.get("worker"), before);
}

#[tokio::test]
async fn a_workflow_that_was_deleted_is_not_started_again() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    world.settle("worker").await.unwrap();
    world.set_workflow("worker", json!({ "state": "RUNNING" }));
    world.settle("worker").await.unwrap();
    let key = ObjectKey::new("default", "worker");
    world.box_api.delete(WORKFLOW, &key).await.unwrap();
    world.settle("worker").await.unwrap();
    let (_, reason, message) = world.condition("worker", "Ready");
    assert_eq!(reason, "WorkflowMissing");
    assert!(message.contains("tinbox.dev/installation-of"), "{message}");
    assert!(world.box_api.names(WORKFLOW).is_empty());
}

#[tokio::test]
async fn objects_of_another_owner_install_nothing() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    let put = |resource, name: &str| {
        let metadata = json!({ "name": name, "namespace": "default" });
        let spec = json!({ "data": "name: erase" });
        world.box_api.put(resource, json!({ "metadata": metadata, "spec": spec }));
    };
    // One object has the name of the machine, the other the second name.
    let second = second_name(&ObjectKey::new("default", "worker"), Some("c1"));
    put(TEMPLATE, "worker");
    put(WORKFLOW, &second);
    world.settle("worker").await.unwrap();
    let (_, reason, message) = world.condition("worker", "Ready");
    assert_eq!(reason, "NameTaken", "{message}");
    assert_eq!(
        (world.box_api.names(WORKFLOW), world.box_api.names(TEMPLATE)),
        (vec![second.clone()], vec!["worker".to_owned()])
    );
    // The second name is free again.
    world.box_api.delete(WORKFLOW, &ObjectKey::new("default", &second)).await.unwrap();
    world.settle("worker").await.unwrap();
    let workflow = world.box_api.peek(WORKFLOW, &second).unwrap();
    assert_eq!(workflow["spec"]["templateRef"], second);
    assert_eq!(world.box_api.names(TEMPLATE), ["worker".to_owned(), second]);
}

#[tokio::test]
async fn a_finalizer_that_was_removed_is_added_again() {
    let world = provisioned().await;
    let mut machine = world.get("worker");
    machine["metadata"]["finalizers"] = json!([]);
    world.management.put(TINKERBELL_MACHINE, machine);
    world.settle("worker").await.unwrap();
    let finalizers = &world.get("worker")["metadata"]["finalizers"];
    assert_eq!(finalizers.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_moved_machine_that_is_deleted_at_once_is_released() {
    let world = provisioned().await;
    let target = World::paired_with("c2", &world.box_api);
    let mut moved = world.get("worker");
    moved["status"] = json!({});
    target.management.put(TINKERBELL_MACHINE, moved);
    delete(&target).await;
    target.settle("worker").await.unwrap();
    assert_eq!(target.condition("worker", "Ready").1, "PoweringOff");
    assert_eq!(target.box_api.names(JOB), ["worker-poweroff"]);
    assert!(target.box_api.names(WORKFLOW).is_empty());
    assert!(target.box_api.names(TEMPLATE).is_empty());
}
