mod changed;

use std::sync::Arc;
use std::time::Duration;

use api::infrastructure::cluster_api::CLUSTER;
use api::infrastructure::{Contract, OWNER_NAME, OWNER_NAMESPACE, TINKERBELL_MACHINE_TEMPLATE};
use api::meta::ObjectKey;
use api::tinkerbell::{AGENT_ATTRIBUTES, HARDWARE};
use jiff::{SignedDuration, Timestamp};
use objects::Objects as _;
use objects::fake::Memory;
use serde_json::{Value, json};
use stdx::TestClock;

use super::TinkerbellMachineTemplateReconciler;
use crate::{ClusterIdentity, ManagementView};
use api::infrastructure::PROVISIONED;
use controllers::runtime::{Reconciler as _, Requeue};

/// Change of a stored object.
type Change = Box<dyn FnOnce(&mut Value)>;

/// A management cluster with one template, and a box that serves it.
struct World {
    remote: Arc<Memory>,
    hardware: Arc<Memory>,
    clock: TestClock,
    reconciler: TinkerbellMachineTemplateReconciler,
    key: ObjectKey,
}

fn world(spec: Value) -> World {
    let remote = Arc::new(Memory::default());
    let key = remote.put(TINKERBELL_MACHINE_TEMPLATE, template(spec));
    on(remote, key, "box-1", Arc::new(Memory::default()))
}

fn on(remote: Arc<Memory>, key: ObjectKey, box_name: &str, hardware: Arc<Memory>) -> World {
    let clock = TestClock::at(Timestamp::UNIX_EPOCH);
    let reconciler = TinkerbellMachineTemplateReconciler {
        view: ManagementView {
            objects: remote.clone(),
            watched: remote.clone(),
            cluster: Some(ClusterIdentity::default()),
            contract: Contract::V1beta2,
            watch_filter: None,
        },
        hardware: hardware.clone(),
        clock: Arc::new(clock.clone()),
        box_name: box_name.to_owned(),
    };
    World { remote, hardware, clock, reconciler, key }
}

fn template(spec: Value) -> Value {
    json!({
        "metadata": {
            "name": "t", "namespace": "default", "generation": 2, "annotations": {}, "labels": {},
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                "name": "c", "uid": "u" }],
        },
        "spec": { "template": { "spec": spec } },
    })
}

/// Returns a Hardware of `rack` with a number of CPU threads and an amount of memory; no report of
/// its agent for 0 threads.
fn host(name: &str, rack: &str, threads: u64, memory: &str) -> Value {
    let report = json!({ "cpu": { "totalThreads": threads }, "memory": { "usable": memory } });
    let annotations = match threads {
        0 => json!({}),
        _ => json!({ AGENT_ATTRIBUTES: report.to_string() }),
    };
    json!({
        "metadata": { "name": name, "namespace": "default", "labels": { "rack": rack },
            "annotations": annotations },
        "spec": {
            "interfaces": [{ "dhcp": { "mac": "52:54:00:77:00:01", "arch": "x86_64",
                "ip": { "address": "10.77.0.11" } } }],
            "disks": [{ "device": "/dev/nvme0n1" }],
        },
    })
}

fn in_use(mut host: Value, machine: &str) -> Value {
    host["metadata"]["labels"][OWNER_NAME] = json!(machine);
    host["metadata"]["labels"][OWNER_NAMESPACE] = json!("default");
    host["metadata"]["annotations"][PROVISIONED] = json!("true");
    host
}

fn rack(rack: &str) -> Value {
    json!({ "hardwareAffinity": { "required": [
        { "labelSelector": { "matchLabels": { "rack": rack } } } ] } })
}

impl World {
    async fn run(&self) -> Value {
        if let Requeue::After(wait) = self.reconciler.reconcile(&self.key).await.unwrap() {
            assert!(wait > Duration::from_secs(60));
        }
        self.object()
    }

    fn object(&self) -> Value {
        self.remote.peek(TINKERBELL_MACHINE_TEMPLATE, &self.key.name).unwrap()
    }

    fn add(&self, hosts: impl IntoIterator<Item = Value>) {
        hosts.into_iter().for_each(|host| drop(self.hardware.put(HARDWARE, host)));
    }

    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut object = self.object();
        change(&mut object);
        self.remote.put(TINKERBELL_MACHINE_TEMPLATE, object);
    }

    /// Returns the reasons of the recorded events; a warning has a `!`.
    fn events(&self) -> Vec<String> {
        let all = std::mem::take(&mut *self.remote.happenings.lock().unwrap());
        let text = |warning| if warning { "!" } else { "" };
        all.iter().map(|it| format!("{}{}", it.reason, text(it.warning))).collect()
    }
}

/// Returns status, reason and message of the condition `Ready`.
fn ready(object: &Value) -> [&str; 3] {
    condition(object, "Ready")
}

fn condition<'a>(object: &'a Value, kind: &str) -> [&'a str; 3] {
    let all = object["status"]["conditions"].as_array().unwrap();
    let found = all.iter().find(|it| it["type"] == kind).unwrap();
    ["status", "reason", "message"].map(|field| found[field].as_str().unwrap())
}

/// Returns the number of matching and of free Hardware.
fn counts(object: &Value) -> [u64; 2] {
    ["matchingHardware", "freeHardware"].map(|field| object["status"][field].as_u64().unwrap())
}

#[tokio::test]
async fn matching_hardware_is_counted_and_measured() {
    let a = |name, threads, memory| host(name, "a", threads, memory);
    let mut arm = a("arm", 4, "8GB");
    arm["spec"]["interfaces"][0]["dhcp"]["arch"] = json!("aarch64");
    let mut unknown = a("unknown", 4, "8GB");
    unknown["spec"]["interfaces"][0]["dhcp"]["arch"] = json!("");
    let amd64 = json!({ "architecture": "amd64", "operatingSystem": "linux" });
    let linux = json!({ "operatingSystem": "linux" });
    let least = |cpu: &str, memory: &str| json!({ "cpu": cpu, "memory": memory });
    let free = ("True", "HardwareAvailable");
    let full = ("True", "HardwareInUse");
    let none = ("False", "NoMatchingHardware");
    let null = Value::Null;
    let rows = [
        (vec![], [0, 0], null.clone(), null.clone(), none),
        (vec![host("b", "b", 8, "16GB")], [0, 0], null.clone(), null.clone(), none),
        (
            vec![a("1", 8, "16GB"), a("2", 4, "32GB"), host("b", "b", 1, "1GB")],
            [2, 2],
            least("4", "16Gi"),
            amd64.clone(),
            free,
        ),
        (
            vec![a("1", 8, "16GB"), in_use(a("2", 4, "8GB"), "m")],
            [2, 1],
            least("4", "8Gi"),
            amd64.clone(),
            free,
        ),
        (vec![in_use(a("1", 8, "512MB"), "t")], [1, 0], least("8", "512Mi"), amd64.clone(), full),
        (vec![in_use(host("b", "b", 8, "1GB"), "m")], [0, 0], null.clone(), null.clone(), none),
        // Hardware without a report.
        (vec![a("1", 0, "")], [1, 1], null.clone(), amd64.clone(), free),
        (vec![a("1", 0, ""), a("2", 2, "1TB")], [2, 2], least("2", "1Ti"), amd64, free),
        (vec![a("1", 2, "4GB"), arm], [2, 2], least("2", "4Gi"), null, free),
        (vec![a("1", 2, "4GB"), unknown], [2, 2], least("2", "4Gi"), linux, free),
    ];
    for (at, (hosts, expected, capacity, node_info, state)) in rows.into_iter().enumerate() {
        let world = world(rack("a"));
        world.add(hosts);
        let object = world.run().await;
        assert_eq!(counts(&object), expected, "{at}");
        assert_eq!(object["status"]["capacity"], capacity, "{at}");
        assert_eq!(object["status"]["nodeInfo"], node_info, "{at}");
        let [status, reason, _] = ready(&object);
        assert_eq!((status, reason), state, "{at}");
        let warning = if status == "True" { "" } else { "!" };
        assert_eq!(world.events(), [format!("{reason}{warning}")]);
    }
}

#[tokio::test]
async fn the_condition_says_why_nothing_matches() {
    let world = world(rack("a"));
    assert_eq!(ready(&world.run().await)[2], "there is no Hardware");
    let hosts = [
        host("nuc-1", "b", 4, "8GB"),
        in_use(host("nuc-2", "b", 4, "8GB"), "m"),
        host("nuc-3", "a", 4, "8GB"),
    ];
    world.add(hosts);
    world.hardware.delete(HARDWARE, &ObjectKey::new("default", "nuc-3")).await.unwrap();
    // Hardware in use is counted by the rule that it does not match.
    let message = "0 of 2 Hardware can be used: 2 do not match hardwareAffinity";
    assert!(ready(&world.run().await)[2].starts_with(message));
    world.add([host("nuc-3", "a", 4, "8GB"), in_use(host("nuc-4", "a", 4, "8GB"), "m")]);
    assert_eq!(ready(&world.run().await)[2], "1 of 2 matching Hardware are free");
    let invalid = json!({ "hardwareAffinity": { "required": [{ "labelSelector": {
        "matchExpressions": [{ "key": "rack", "operator": "Equals" }] } }] } });
    world.edit(|object| object["spec"] = template(invalid)["spec"].clone());
    let object = world.run().await;
    assert_eq!(ready(&object)[1], "NoMatchingHardware");
    assert!(ready(&object)[2].starts_with("spec.hardwareAffinity.required[0]: label rack"));
    assert_eq!(counts(&object), [0, 0]);
}

#[tokio::test]
async fn a_second_run_writes_nothing() {
    let world = world(rack("a"));
    world.edit(|it| it["status"] = json!({ "later": 1 }));
    world.add([host("1", "a", 8, "16GB"), in_use(host("2", "a", 4, "8GB"), "m")]);
    let before = world.run().await;
    assert_eq!(before["status"]["later"], 1);
    assert_eq!(before["status"]["conditions"][0]["observedGeneration"], 2);
    world.events();
    world.clock.advance(SignedDuration::from_hours(1));
    assert_eq!(world.run().await, before);
    assert_eq!(world.events(), [""; 0]);
    world.add([in_use(host("1", "a", 8, "16GB"), "n")]);
    let after = world.run().await;
    assert_eq!(ready(&after)[1], "HardwareInUse");
    assert_eq!(world.events(), ["HardwareInUse"]);
    let time = |object: &Value| object["status"]["conditions"][0]["lastTransitionTime"].clone();
    assert_eq!(time(&after), time(&before), "the status of the condition did not change");
}

#[tokio::test]
async fn paused_deleted_and_foreign_templates_are_not_touched() {
    let paused = "cluster.x-k8s.io/paused";
    let changes: [Change; 4] = [
        Box::new(|it| it["metadata"]["deletionTimestamp"] = json!("2026-11-20T10:00:00Z")),
        Box::new(move |it| it["metadata"]["annotations"][paused] = json!("")),
        Box::new(|_| {}),
        Box::new(|_| {}),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut world = world(rack("a"));
        world.edit(change);
        if at == 2 {
            world.reconciler.view.watch_filter = Some("box-1".to_owned());
        }
        let metadata = json!({ "name": "c", "namespace": "default" });
        let owner = json!({ "metadata": metadata, "spec": { "paused": at == 3 } });
        world.remote.put(CLUSTER, owner);
        let before = world.object();
        assert_eq!(world.run().await, before, "{at}");
        assert_eq!(world.events(), [""; 0]);
    }
}

#[tokio::test]
async fn each_box_reports_its_own_hardware_in_any_order() {
    let all = [
        ("box-1", vec![host("1", "a", 8, "16GB"), in_use(host("2", "a", 8, "16GB"), "m")]),
        ("box-2", vec![host("1", "a", 4, "32GB")]),
        ("box-3", vec![host("1", "b", 1, "1GB")]),
        ("box-4", vec![]),
    ];
    let mut results = Vec::new();
    for first in 0..4 {
        for second in (0..4).filter(|it| *it != first) {
            for third in (0..4).filter(|it| *it != first && *it != second) {
                let order = [first, second, third, 6 - first - second - third];
                let remote = Arc::new(Memory::default());
                let key = remote.put(TINKERBELL_MACHINE_TEMPLATE, template(rack("a")));
                let worlds = order.map(|at| {
                    let world = on(remote.clone(), key.clone(), all[at].0, Arc::default());
                    world.add(all[at].1.clone());
                    world
                });
                for world in &worlds {
                    world.run().await;
                }
                let object = worlds[0].object();
                for world in &worlds {
                    assert_eq!(world.run().await, object, "the boxes are at rest");
                }
                results.push(object["status"].clone());
            }
        }
    }
    assert_eq!(results.len(), 24);
    let status = &results[0];
    assert!(results.iter().all(|it| it == status));
    assert_eq!(status["boxes"].as_array().unwrap().len(), 4);
    assert_eq!((&status["matchingHardware"], &status["freeHardware"]), (&json!(3), &json!(2)));
    assert_eq!(status["capacity"], json!({ "cpu": "4", "memory": "16Gi" }));
    assert_eq!(status["nodeInfo"]["architecture"], "amd64");
}

#[tokio::test]
async fn the_message_of_several_boxes_names_each() {
    let world = world(rack("a"));
    let other = on(world.remote.clone(), world.key.clone(), "box-2", Arc::default());
    other.add([host("nuc-1", "b", 4, "8GB")]);
    world.run().await;
    let object = other.run().await;
    let expected = "box-1: there is no Hardware\nbox-2: default/nuc-1 does not match \
                    hardwareAffinity";
    assert_eq!(ready(&object)[2], expected);
    assert_eq!(world.run().await, object);
}
