//! Tests of machines that CAPT, the stock provider, installed.

use api::bmc::JOB;
use api::infrastructure::{PROVISIONED, TINKERBELL_MACHINE};
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, WORKFLOW};
use objects::Objects as _;
use serde_json::{Value, json};

use super::World;
use super::deletion::{bmc, end_job};

/// Finalizers of CAPT 0.7 and 0.6.
const FINALIZERS: [&str; 2] = [
    "infrastructure.cluster.x-k8s.io/tinkerbellmachine",
    "tinkerbellmachine.infrastructure.cluster.x-k8s.io",
];

/// Creates a machine and its Hardware as CAPT leaves them.
fn installed(finalizer: &str) -> World {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    let mut host = world.host("nuc1");
    let metadata = &mut host["metadata"];
    metadata["finalizers"] = json!([finalizer]);
    metadata["labels"]["v1alpha1.tinkerbell.org/ownerName"] = json!("worker");
    metadata["labels"]["v1alpha1.tinkerbell.org/ownerNamespace"] = json!("default");
    metadata["annotations"]["v1alpha1.tinkerbell.org/provisioned"] = json!("true");
    host["spec"]["userData"] = json!("of CAPT");
    world.box_api.put(HARDWARE, host);
    let mut machine = world.get("worker");
    machine["metadata"]["finalizers"] = json!([finalizer]);
    machine["spec"]["hardwareName"] = json!("nuc1");
    machine["spec"]["providerID"] = json!("tinkerbell://default/nuc1");
    machine["status"] = json!({ "ready": true, "targetNamespace": "default" });
    world.management.put(TINKERBELL_MACHINE, machine);
    world
}

async fn delete(world: &World) {
    let key = ObjectKey::new("default", "worker");
    world.management.delete(TINKERBELL_MACHINE, &key).await.unwrap();
}

#[tokio::test]
async fn a_machine_of_the_stock_provider_is_adopted_and_later_released() {
    for finalizer in FINALIZERS {
        let world = installed(finalizer);
        let spec = world.host("nuc1")["spec"].clone();
        world.settle("worker").await.unwrap();
        let (status, reason, message) = world.condition("worker", "Ready");
        assert_eq!((&*status, &*reason), ("True", "Provisioned"), "{message}");
        let host = world.host("nuc1");
        assert_eq!(host["spec"], spec);
        assert_eq!(host["metadata"]["labels"]["tinbox.dev/management-cluster-uid"], "c1");
        for object in [&host, &world.get("worker")] {
            assert_eq!(object["metadata"]["finalizers"], json!([FINALIZERS[0]]));
        }
        assert!(world.box_api.names(WORKFLOW).is_empty());
        assert!(world.box_api.names(JOB).is_empty());
        delete(&world).await;
        world.settle("worker").await.unwrap();
        assert_eq!(world.condition("worker", "Ready").1, "PoweringOff");
        end_job(&world);
        let _ = world.settle("worker").await;
        assert_free(&world);
    }
}

#[tokio::test]
async fn a_machine_that_was_deleted_before_the_takeover_is_released() {
    for finalizer in FINALIZERS {
        let world = installed(finalizer);
        delete(&world).await;
        world.settle("worker").await.unwrap();
        assert_eq!(world.condition("worker", "Ready").1, "PoweringOff");
        end_job(&world);
        let _ = world.settle("worker").await;
        assert_free(&world);
    }
}

/// Removes what CAPT writes last: the annotation of the Hardware.
fn interrupt(world: &World) {
    let mut host = world.host("nuc1");
    host["metadata"]["annotations"].as_object_mut().unwrap().remove(PROVISIONED);
    world.box_api.put(HARDWARE, host);
    let labels = json!({ "capt.tinkerbell.org/machine-name": "worker",
        "capt.tinkerbell.org/machine-namespace": "default" });
    let workflow = json!({
        "metadata": { "name": "worker", "namespace": "default", "labels": labels },
        "spec": { "templateRef": "worker", "hardwareRef": "nuc1" },
        "status": { "state": "RUNNING" },
    });
    world.box_api.put(WORKFLOW, workflow);
}

#[tokio::test]
async fn a_deletion_ends_an_installation_of_the_stock_provider() {
    for finalizer in FINALIZERS {
        let world = installed(finalizer);
        interrupt(&world);
        world.settle("worker").await.unwrap();
        assert_eq!(world.condition("worker", "Ready").1, "NoHardware");
        delete(&world).await;
        world.settle("worker").await.unwrap();
        assert_eq!(world.condition("worker", "Ready").1, "PoweringOff");
        assert!(world.box_api.names(WORKFLOW).is_empty());
        end_job(&world);
        let _ = world.settle("worker").await;
        assert_free(&world);
    }
}

#[tokio::test]
async fn a_machine_whose_name_the_stock_provider_did_not_write_is_not_installed_twice() {
    let world = installed(FINALIZERS[0]);
    interrupt(&world);
    world.hardware("nuc2", json!({}));
    let mut machine = world.get("worker");
    machine["metadata"]["finalizers"] = json!([]);
    machine["spec"] = json!({});
    machine["status"] = json!({});
    world.management.put(TINKERBELL_MACHINE, machine);
    world.settle("worker").await.unwrap();
    let (_, reason, message) = world.condition("worker", "Ready");
    assert_eq!(reason, "NoHardware");
    assert!(message.contains("nuc1 is in use by the machine default/worker"), "{message}");
    assert_eq!(world.box_api.names(WORKFLOW), ["worker"]);
    assert_eq!(world.host("nuc2")["metadata"]["labels"], Value::Null);
}

#[tokio::test]
async fn a_free_hardware_of_the_same_name_on_another_box_is_not_adopted() {
    let world = installed(FINALIZERS[0]);
    let mut host = world.host("nuc1");
    host["metadata"]["labels"] = json!({});
    host["metadata"]["annotations"] = json!({});
    world.box_api.put(HARDWARE, host.clone());
    world.settle("worker").await.unwrap();
    let (_, reason, message) = world.condition("worker", "Ready");
    assert_eq!(reason, "NoHardware");
    assert!(message.contains("lacks the labels of its machine"), "{message}");
    assert_eq!(world.host("nuc1")["metadata"]["labels"], json!({}));
    delete(&world).await;
    world.settle("worker").await.unwrap();
    assert_eq!(world.condition("worker", "Ready").1, "HardwareMissing");
    assert!(world.box_api.names(JOB).is_empty());
    let mut machine = world.get("worker");
    machine["metadata"]["annotations"] = json!({ "tinbox.dev/skip-power-off": "" });
    world.management.put(TINKERBELL_MACHINE, machine);
    let _ = world.settle("worker").await;
    assert!(world.management.peek(TINKERBELL_MACHINE, "worker").is_none());
    assert_eq!(world.host("nuc1")["spec"], host["spec"]);
}

fn assert_free(world: &World) {
    assert!(world.management.peek(TINKERBELL_MACHINE, "worker").is_none());
    let host = world.host("nuc1");
    assert_eq!(host["metadata"]["finalizers"], json!([]));
    assert_eq!(host["metadata"]["labels"], json!({}));
    assert_eq!(host["spec"]["userData"], Value::Null);
}
