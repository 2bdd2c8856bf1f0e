//! Tests of the release of a Hardware.

use api::bmc::JOB;
use api::infrastructure::TINKERBELL_MACHINE;
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use objects::Objects as _;
use serde_json::{Value, json};

use super::World;
use controllers::runtime::Reconciler as _;

pub fn bmc() -> Value {
    json!({ "bmcRef": { "kind": "Machine", "name": "bmc1" } })
}

async fn delete(world: &World) {
    let key = ObjectKey::new("default", "worker");
    world.management.delete(TINKERBELL_MACHINE, &key).await.unwrap();
}

pub fn end_job(world: &World) {
    let mut job = world.box_api.peek(JOB, "worker-poweroff").unwrap();
    let condition = json!({ "type": "Completed", "status": "True" });
    job["status"] = json!({ "conditions": [condition] });
    world.box_api.put(JOB, job);
}

#[tokio::test]
async fn the_machine_is_switched_off_before_its_hardware_is_free() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    world.provision("worker").await;
    let workflow = world.box_api.peek(WORKFLOW, "worker").unwrap();
    assert_eq!(workflow["spec"]["bootOptions"]["bootMode"], "netboot");
    delete(&world).await;
    world.settle("worker").await.unwrap();
    assert_eq!(world.condition("worker", "Ready").1, "PoweringOff");
    assert!(world.box_api.peek(WORKFLOW, "worker").is_none());
    assert!(world.box_api.peek(TEMPLATE, "worker").is_none());
    let job = world.box_api.peek(JOB, "worker-poweroff").unwrap();
    assert_eq!(job["spec"]["tasks"], json!([{ "powerAction": "off" }]));
    assert!(!world.host("nuc1")["metadata"]["labels"].as_object().unwrap().is_empty());
    end_job(&world);
    let _ = world.settle("worker").await;
    assert!(world.management.peek(TINKERBELL_MACHINE, "worker").is_none());
    assert!(world.box_api.names(JOB).is_empty());
    let host = world.host("nuc1");
    assert_eq!(host["metadata"]["labels"], json!({}));
    assert_eq!(host["metadata"]["finalizers"], json!([]));
    let annotations = &host["metadata"]["annotations"];
    assert_eq!(annotations["v1alpha1.tinkerbell.org/provisioned"], Value::Null);
    assert!(annotations["tinbox.dev/released-at"].is_string());
    assert_eq!(host["spec"]["userData"], Value::Null);
    assert_eq!(host["spec"]["interfaces"][0]["netboot"]["allowPXE"], false);
}

#[tokio::test]
async fn a_refused_power_off_is_reported_and_repeated_after_a_wait() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    world.provision("worker").await;
    delete(&world).await;
    world.settle("worker").await.unwrap();
    let mut job = world.box_api.peek(JOB, "worker-poweroff").unwrap();
    let condition = json!({ "type": "Failed", "status": "True", "message": "no answer" });
    let now = "1970-01-01T00:00:00Z";
    job["status"] = json!({ "conditions": [condition], "completionTime": now });
    world.box_api.put(JOB, job);
    world.settle("worker").await.unwrap();
    let (_, reason, message) = world.condition("worker", "Ready");
    assert_eq!(reason, "PowerOffFailed");
    assert!(message.contains("no answer") && message.contains("skip-power-off"), "{message}");
    assert_eq!(world.box_api.names(JOB), ["worker-poweroff"]);
    assert!(world.host("nuc1")["spec"]["userData"].is_string(), "the Hardware is not free");
}

#[tokio::test]
async fn a_job_of_an_earlier_machine_with_this_name_proves_nothing() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    world.provision("worker").await;
    let labels = json!({
        "capt.tinkerbell.org/machine-name": "worker",
        "capt.tinkerbell.org/machine-namespace": "default",
        "tinbox.dev/management-cluster-uid": "c1",
        "tinbox.dev/machine-uid": "an earlier one",
    });
    let metadata = json!({ "name": "worker-poweroff", "namespace": "default", "labels": labels });
    let done = json!({ "conditions": [{ "type": "Completed", "status": "True" }] });
    world.box_api.put(JOB, json!({ "metadata": metadata, "status": done }));
    delete(&world).await;
    world.settle("worker").await.unwrap();
    assert_eq!(world.condition("worker", "Ready").1, "PoweringOff");
    let job = world.box_api.peek(JOB, "worker-poweroff").unwrap();
    let uid = &world.get("worker")["metadata"]["uid"];
    assert_eq!(job["metadata"]["labels"]["tinbox.dev/machine-uid"], *uid);
}

#[tokio::test]
async fn deletion_completes_without_a_working_bmc_or_hardware() {
    for case in ["skip", "no hardware", "never claimed"] {
        let world = World::paired();
        if case != "never claimed" {
            world.hardware("nuc1", bmc());
            world.provision("worker").await;
        }
        match case {
            "skip" => {
                let mut machine = world.get("worker");
                machine["metadata"]["annotations"] = json!({ "tinbox.dev/skip-power-off": "" });
                world.management.put(TINKERBELL_MACHINE, machine);
            }
            "no hardware" => {
                let mut host = world.host("nuc1");
                host["metadata"]["finalizers"] = json!([]);
                world.box_api.put(HARDWARE, host);
                let key = ObjectKey::new("default", "nuc1");
                world.box_api.delete(HARDWARE, &key).await.unwrap();
            }
            _ => world.settle("worker").await.map(drop).unwrap(),
        }
        delete(&world).await;
        let _ = world.settle("worker").await;
        assert!(world.management.peek(TINKERBELL_MACHINE, "worker").is_none(), "{case}");
        assert!(world.box_api.names(JOB).is_empty(), "{case}");
    }
}

#[tokio::test]
async fn an_installation_that_runs_is_stopped_by_the_deletion() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    world.settle("worker").await.unwrap();
    world.set_workflow("worker", json!({ "state": "RUNNING" }));
    delete(&world).await;
    world.settle("worker").await.unwrap();
    assert!(world.box_api.names(WORKFLOW).is_empty());
    assert_eq!(world.box_api.names(JOB), ["worker-poweroff"]);
}

#[tokio::test]
async fn a_boot_job_that_runs_ends_before_the_machine_is_switched_off() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    world.provision("worker").await;
    let owner = json!({ "kind": "Workflow", "name": "worker", "uid": "w" });
    let metadata = json!({ "name": "boot", "namespace": "default", "ownerReferences": [owner] });
    world.box_api.put(JOB, json!({ "metadata": metadata }));
    delete(&world).await;
    for _ in 0..3 {
        let key = ObjectKey::new("default", "worker");
        world.reconciler().reconcile(&key).await.unwrap();
    }
    assert_eq!(world.box_api.names(JOB), ["boot"]);
    let ended = json!({ "conditions": [{ "type": "Completed", "status": "True" }] });
    world.box_api.put(JOB, json!({ "metadata": metadata, "status": ended }));
    world.settle("worker").await.unwrap();
    assert_eq!(world.box_api.names(JOB), ["boot", "worker-poweroff"]);
}
