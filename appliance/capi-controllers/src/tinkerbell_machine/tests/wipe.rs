//! Tests of the erase before the release of a Hardware.

use api::bmc::JOB;
use api::infrastructure::TINKERBELL_MACHINE;
use api::meta::ObjectKey;
use api::tinkerbell::{TEMPLATE, WORKFLOW};
use objects::Objects as _;
use serde_json::{Value, json};

use controllers::runtime::Reconciler as _;

use super::World;

const SKIP: &str = "tinbox.dev/skip-wipe";

fn bmc() -> Value {
    let disks = ["/dev/nvme0n1", "/dev/sda", "serialNumber=S4EV"];
    let disks: Vec<_> = disks.iter().map(|disk| json!({ "device": disk })).collect();
    json!({ "bmcRef": { "kind": "Machine", "name": "bmc1" }, "disks": disks })
}

fn edit(world: &World, change: impl FnOnce(&mut Value)) {
    let mut machine = world.get("worker");
    change(&mut machine);
    world.management.put(TINKERBELL_MACHINE, machine);
}

async fn delete(world: &World) {
    let key = ObjectKey::new("default", "worker");
    world.management.delete(TINKERBELL_MACHINE, &key).await.unwrap();
    let _ = world.settle("worker").await;
}

/// Returns a world with a provisioned and deleted machine that requires an erase.
async fn deleted(method: &str) -> World {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    world.provision("worker").await;
    edit(&world, |machine| machine["spec"]["wipeOnRelease"] = json!(method));
    delete(&world).await;
    world
}

fn workflow(world: &World) -> String {
    let names = world.box_api.names(WORKFLOW);
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].starts_with("worker-wipe-"), "{names:?}");
    names[0].clone()
}

/// Ends the erase of the machine with a state.
async fn end(world: &World, state: &str) {
    let ended = json!({ "time": "2026-11-27T10:00:00Z", "reason": "ActionFailed",
        "message": "wipe disk 1: old data" });
    world.set_workflow(&workflow(world), json!({ "state": state, "ended": ended }));
    let _ = world.settle("worker").await;
}

#[tokio::test]
async fn the_disks_are_erased_before_the_machine_is_switched_off_and_free() {
    let world = deleted("Auto").await;
    assert_eq!(world.condition("worker", "Ready").1, "WipingDisks");
    assert!(world.box_api.names(JOB).is_empty(), "the machine stays on for the erase");
    let name = workflow(&world);
    let object = world.box_api.peek(WORKFLOW, &name).unwrap();
    assert_eq!(object["spec"]["templateRef"], *name);
    assert_eq!(object["spec"]["bootOptions"]["bootMode"], "netboot");
    let text = world.box_api.peek(TEMPLATE, &name).unwrap();
    let text = text["spec"]["data"].as_str().unwrap().to_owned();
    for part in ["BLOCK_DEVICE: /dev/nvme0n1", "BLOCK_DEVICE: /dev/sda", "serialNumber=S4EV"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("WIPE_METHOD: auto").count(), 3, "{text}");
    end(&world, "SUCCESS").await;
    assert_eq!(world.condition("worker", "Ready").1, "PoweringOff");
    assert!(world.box_api.names(WORKFLOW).is_empty() && world.box_api.names(TEMPLATE).is_empty());
    assert_eq!(world.box_api.names(JOB), ["worker-poweroff"]);
    super::deletion::end_job(&world);
    let _ = world.settle("worker").await;
    assert!(world.management.peek(TINKERBELL_MACHINE, "worker").is_none());
    let annotations = world.host("nuc1")["metadata"]["annotations"].clone();
    assert_eq!(annotations.get("tinbox.dev/wiped-for"), None, "{annotations}");
    let reasons = world.reasons();
    assert_eq!(reasons[3..], ["DisksWiping", "DisksWiped", "HardwareReleased"]);
}

#[tokio::test]
async fn a_disk_that_cannot_be_erased_keeps_the_hardware_until_a_person_decides() {
    let world = deleted("Zero").await;
    end(&world, "FAILED").await;
    let (_, reason, message) = world.condition("worker", "Ready");
    assert_eq!(reason, "WipeFailed");
    for part in ["old data", "tinbox workflow retry worker-wipe-", SKIP] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(world.box_api.names(JOB).is_empty());
    let owner = &world.host("nuc1")["metadata"]["labels"]["v1alpha1.tinkerbell.org/ownerName"];
    assert_eq!(owner, "worker");
    edit(&world, |machine| machine["metadata"]["annotations"][SKIP] = json!(""));
    world.settle("worker").await.unwrap();
    assert_eq!(world.condition("worker", "Ready").1, "PoweringOff");
}

#[tokio::test]
async fn nothing_is_erased_without_a_known_request_and_an_installation() {
    for (method, is_installed, reason) in
        [("None", true, "PoweringOff"), ("Shred", true, "WipeFailed"), ("Auto", false, "deleted")]
    {
        let world = World::paired();
        world.hardware("nuc1", bmc());
        edit(&world, |machine| machine["spec"]["wipeOnRelease"] = json!(method));
        if is_installed {
            world.provision("worker").await;
        }
        delete(&world).await;
        match world.management.peek(TINKERBELL_MACHINE, "worker") {
            Some(_) => assert_eq!(world.condition("worker", "Ready").1, reason, "{method}"),
            None => assert_eq!(reason, "deleted", "{method}"),
        }
        let names = world.box_api.names(WORKFLOW);
        assert!(!names.iter().any(|name| name.contains("wipe")), "{method}: {names:?}");
    }
}

#[tokio::test]
async fn a_preserved_disk_is_left_out() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    world.provision("worker").await;
    let mut host = world.host("nuc1");
    host["metadata"]["annotations"]["tinbox.dev/preserve-disks"] =
        json!("/dev/sda; serialNumber=S4EV");
    world.box_api.put(api::tinkerbell::HARDWARE, host);
    edit(&world, |machine| machine["spec"]["wipeOnRelease"] = json!("Discard"));
    delete(&world).await;
    let text = world.box_api.peek(TEMPLATE, &workflow(&world)).unwrap().to_string();
    assert!(text.contains("/dev/nvme0n1") && !text.contains("sda") && !text.contains("S4EV"));
}

#[tokio::test]
async fn an_erase_that_is_requested_late_is_followed_by_another_power_off() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    world.provision("worker").await;
    delete(&world).await;
    assert_eq!(world.box_api.names(JOB), ["worker-poweroff"]);
    edit(&world, |machine| machine["spec"]["wipeOnRelease"] = json!("Auto"));
    super::deletion::end_job(&world);
    world.settle("worker").await.unwrap();
    assert!(world.box_api.names(JOB).is_empty());
    end(&world, "SUCCESS").await;
    assert_eq!(world.box_api.names(JOB), ["worker-poweroff"]);
    assert_eq!(world.condition("worker", "Ready").1, "PoweringOff");
}

#[tokio::test]
async fn an_erase_ends_with_its_request() {
    for change in ["None", "skip", "vanished", "moved"] {
        let world = deleted("Auto").await;
        workflow(&world);
        match change {
            "None" => edit(&world, |machine| machine["spec"]["wipeOnRelease"] = json!("None")),
            "skip" => edit(&world, |machine| machine["metadata"]["annotations"][SKIP] = json!("")),
            "vanished" => {
                edit(&world, |machine| machine["metadata"]["finalizers"] = json!([]));
                let key = ObjectKey::new("default", "worker");
                world.management.delete(TINKERBELL_MACHINE, &key).await.unwrap();
            }
            // A copy of the machine, which `clusterctl move` creates in another cluster.
            _ => edit(&world, |machine| {
                machine["metadata"]["uid"] = json!("copy");
                let metadata = machine["metadata"].as_object_mut().unwrap();
                metadata.remove("deletionTimestamp").unwrap();
            }),
        }
        let _ = world.settle("worker").await;
        let left = [WORKFLOW, TEMPLATE].map(|resource| world.box_api.names(resource));
        assert!(left.iter().flatten().all(|name| !name.contains("wipe")), "{change}: {left:?}");
        let host = world.host("nuc1");
        let annotation = &host["metadata"]["annotations"]["tinbox.dev/wipe-workflow"];
        assert_eq!(*annotation, Value::Null, "{change}");
        let is_released = ["None", "skip"].contains(&change);
        assert_eq!(world.box_api.names(JOB).len(), usize::from(is_released), "{change}");
        assert_eq!(world.reasons().contains(&"WipeSkipped".to_owned()), change == "skip");
    }
}

#[tokio::test]
async fn a_power_cycle_that_runs_ends_before_the_erase_and_the_power_off() {
    let world = World::paired();
    world.hardware("nuc1", bmc());
    world.provision("worker").await;
    let metadata = json!({ "name": "nuc1-remediation-x-1", "namespace": "default" });
    let tasks = json!([{ "powerAction": "off" }, { "powerAction": "on" }]);
    let spec = json!({ "machineRef": { "name": "bmc1", "namespace": "default" }, "tasks": tasks });
    world.box_api.put(JOB, json!({ "metadata": metadata, "spec": spec }));
    let key = ObjectKey::new("default", "worker");
    world.management.delete(TINKERBELL_MACHINE, &key).await.unwrap();
    for _ in 0..3 {
        world.reconciler().reconcile(&key).await.unwrap();
    }
    assert_eq!(world.box_api.names(JOB), ["nuc1-remediation-x-1"]);
}
