//! Tests of the reconciler on in-memory objects.

use std::sync::Arc;
use std::time::Duration;

use api::bmc::JOB;
use api::infrastructure::cluster_api::{CLUSTER_V1BETA2, MACHINE_V1BETA2};
use api::infrastructure::{Contract, TINKERBELL_MACHINE, TINKERBELL_REMEDIATION};
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::HARDWARE;
use jiff::Timestamp;
use objects::Objects;
use objects::fake::Memory;
use serde_json::{Value, json};
use stdx::TestClock;

use super::TinkerbellRemediationReconciler;
use crate::{ClusterIdentity, ManagementView};
use controllers::runtime::{Reconciler as _, Requeue};

struct World {
    box_api: Arc<Memory>,
    management: Arc<Memory>,
}

impl World {
    /// Creates a provisioned machine `worker` with a BMC, and a request to repair the machine.
    fn new(spec: Value) -> Self {
        let world = Self { box_api: Arc::default(), management: Arc::default() };
        world.put(CLUSTER_V1BETA2, "demo", json!({}));
        let reference = json!({ "kind": "TinkerbellMachine", "name": "infra-1",
            "apiGroup": "infrastructure.cluster.x-k8s.io" });
        let machine = json!({ "clusterName": "demo", "infrastructureRef": reference });
        world.put(MACHINE_V1BETA2, "worker", json!({ "spec": machine }));
        let annotations = json!({ "tinbox.dev/box": "id-1" });
        let infrastructure = json!({
            "metadata": { "annotations": annotations },
            "spec": { "hardwareName": "nuc1", "providerID": "tinkerbell://default/nuc1" },
            "status": { "initialization": { "provisioned": true }, "targetNamespace": "default" },
        });
        world.put(TINKERBELL_MACHINE, "infra-1", infrastructure);
        world.put(TINKERBELL_REMEDIATION, "worker", json!({ "spec": spec }));
        let labels = json!({
            "v1alpha1.tinkerbell.org/ownerName": "infra-1",
            "v1alpha1.tinkerbell.org/ownerNamespace": "default",
            "tinbox.dev/management-cluster-uid": "c1",
        });
        let metadata = json!({ "name": "nuc1", "namespace": "default", "labels": labels });
        let spec = json!({ "bmcRef": { "kind": "Machine", "name": "bmc1" } });
        world.box_api.put(HARDWARE, json!({ "metadata": metadata, "spec": spec }));
        world
    }

    fn put(&self, resource: Resource, name: &str, mut object: Value) {
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!("default");
        self.management.put(resource, object);
    }

    fn edit(&self, resource: Resource, name: &str, change: impl FnOnce(&mut Value)) {
        let of_box = [HARDWARE, JOB].contains(&resource);
        let objects = if of_box { &self.box_api } else { &self.management };
        let mut object = objects.peek(resource, name).unwrap();
        change(&mut object);
        objects.put(resource, object);
    }

    /// Reconciles at `seconds` until the next reconcile is not due at once.
    async fn settle_at(&self, seconds: i64) -> Requeue {
        let now = Timestamp::from_second(seconds).unwrap();
        let reconciler = TinkerbellRemediationReconciler {
            view: ManagementView {
                objects: self.management.clone(),
                watched: self.management.clone(),
                cluster: Some(ClusterIdentity { uid: "c1".to_owned(), name: "prod".to_owned() }),
                contract: Contract::V1beta2,
                watch_filter: None,
            },
            objects: self.box_api.clone(),
            clock: Arc::new(TestClock::at(now)),
            box_id: "id-1".to_owned(),
        };
        for _ in 0..10 {
            match reconciler.reconcile(&ObjectKey::new("default", "worker")).await.unwrap() {
                Requeue::After(wait) if wait < Duration::from_secs(1) => {}
                requeue => return requeue,
            }
        }
        panic!("the request is not at rest");
    }

    fn end_job(&self, kind: &str) {
        let [name] = &self.box_api.names(JOB)[..] else { panic!("{:?}", self.box_api.names(JOB)) };
        let condition = json!({ "type": kind, "status": "True", "message": "no answer" });
        self.edit(JOB, name, |job| job["status"] = json!({ "conditions": [condition] }));
    }

    fn status(&self) -> Value {
        self.management.peek(TINKERBELL_REMEDIATION, "worker").unwrap()["status"].clone()
    }

    /// Returns the condition `OwnerRemediated` of the Machine, and its form in v1beta1.
    fn owner_remediated(&self) -> [Value; 2] {
        let status = &self.management.peek(MACHINE_V1BETA2, "worker").unwrap()["status"];
        let find = |list: &Value| {
            let all = list.as_array().cloned().unwrap_or_default();
            all.into_iter().find(|it| it["type"] == "OwnerRemediated").unwrap_or_default()
        };
        [find(&status["conditions"]), find(&status["deprecated"]["v1beta1"]["conditions"])]
    }

    fn reasons(&self) -> Vec<String> {
        let all = self.management.happenings.lock().unwrap();
        all.iter().map(|event| event.reason.clone()).collect()
    }
}

#[tokio::test]
async fn the_machine_is_switched_off_and_on_then_replaced() {
    let world = World::new(json!({ "powerCycles": 2, "healthTimeoutSeconds": 100 }));
    for cycle in 1..=2 {
        let at = 1000 * i64::from(cycle);
        world.settle_at(at).await;
        assert_eq!(world.status()["phase"], "PowerCycling");
        let name = world.box_api.names(JOB)[0].clone();
        assert!(name.starts_with("nuc1-remediation-") && name.ends_with(&format!("-{cycle}")));
        let job = world.box_api.peek(JOB, &name).unwrap();
        let tasks = json!([{ "powerAction": "off" }, { "powerAction": "on" }]);
        assert_eq!(job["spec"]["tasks"], tasks);
        assert_eq!(job["spec"]["machineRef"]["name"], "bmc1");
        world.end_job("Completed");
        let left = Requeue::After(Duration::from_secs(100));
        assert_eq!(world.settle_at(at).await, left);
        assert_eq!(world.status()["phase"], "WaitingForHealth");
        assert_eq!(world.status()["powerCycles"], cycle);
        assert!(world.box_api.names(JOB).is_empty());
        let left = Requeue::After(Duration::from_secs(1));
        assert_eq!(world.settle_at(at + 99).await, left);
        assert_eq!(world.owner_remediated(), [Value::Null, Value::Null]);
    }
    world.settle_at(2100).await;
    assert_eq!(world.status()["phase"], "Replacing");
    for condition in world.owner_remediated() {
        assert_eq!(condition["status"], "False");
        assert_eq!(condition["reason"], "WaitingForRemediation");
        assert!(condition["message"].as_str().unwrap().contains("after 2 of 2 power cycles"));
    }
    let machine = world.management.peek(MACHINE_V1BETA2, "worker").unwrap();
    world.settle_at(2200).await;
    assert_eq!(world.management.peek(MACHINE_V1BETA2, "worker").unwrap(), machine);
    assert!(world.box_api.names(JOB).is_empty());
    let cycle = ["PowerCycling", "WaitingForHealth"];
    assert_eq!(world.reasons(), [&cycle[..], &cycle, &["Replacing"]].concat());
}

#[tokio::test]
async fn a_refused_power_cycle_is_repeated_after_a_wait_then_the_machine_is_replaced() {
    let world = World::new(json!({ "powerCycles": 2 }));
    world.settle_at(0).await;
    world.end_job("Failed");
    assert_eq!(world.settle_at(1).await, Requeue::After(Duration::from_secs(60)));
    assert_eq!(world.reasons(), ["PowerCycling", "PowerCycleFailed"]);
    let status = world.status();
    assert!(status.to_string().contains("no answer"), "{status}");
    world.settle_at(62).await;
    world.end_job("Failed");
    world.settle_at(63).await;
    assert_eq!(world.status()["phase"], "Replacing");
    assert_eq!(world.owner_remediated()[0]["status"], "False");
}

#[tokio::test]
async fn a_power_cycle_without_effect_is_left_out() {
    type Change = (&'static str, fn(&World));
    let changes: [Change; 3] = [
        ("has no BMC", |world| {
            world.edit(HARDWARE, "nuc1", |host| host["spec"] = json!({}));
        }),
        ("did not end", |world| {
            world.edit(TINKERBELL_MACHINE, "infra-1", |machine| {
                machine["status"]["initialization"] = Value::Null;
                machine["spec"]["providerID"] = json!("");
            });
        }),
        ("requests no power cycle", |world| {
            world.edit(TINKERBELL_REMEDIATION, "worker", |request| {
                request["spec"]["powerCycles"] = json!(0);
            });
        }),
    ];
    for (part, change) in changes {
        let world = World::new(json!({}));
        change(&world);
        world.settle_at(0).await;
        assert!(world.box_api.names(JOB).is_empty(), "{part}");
        let [condition, _] = world.owner_remediated();
        assert!(condition["message"].as_str().unwrap().contains(part), "{condition}");
    }
}

#[tokio::test]
async fn a_machine_that_is_paused_deleted_or_of_another_box_is_not_touched() {
    let pause = |object: &mut Value| {
        object["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = json!("");
    };
    let delete = |object: &mut Value| {
        object["metadata"]["deletionTimestamp"] = json!("2026-11-27T10:00:00Z");
    };
    type Edit = (Resource, &'static str, Box<dyn FnOnce(&mut Value)>);
    let edits: [Edit; 7] = [
        (TINKERBELL_REMEDIATION, "worker", Box::new(pause)),
        (MACHINE_V1BETA2, "worker", Box::new(pause)),
        (CLUSTER_V1BETA2, "demo", Box::new(|it| it["spec"] = json!({ "paused": true }))),
        (TINKERBELL_REMEDIATION, "worker", Box::new(delete)),
        (MACHINE_V1BETA2, "worker", Box::new(delete)),
        (TINKERBELL_MACHINE, "infra-1", Box::new(delete)),
        (
            TINKERBELL_MACHINE,
            "infra-1",
            Box::new(|it| it["metadata"]["annotations"]["tinbox.dev/box"] = json!("id-2")),
        ),
    ];
    for (at, (resource, name, edit)) in edits.into_iter().enumerate() {
        let world = World::new(json!({}));
        world.edit(resource, name, |object| {
            if object["metadata"]["annotations"].is_null() {
                object["metadata"]["annotations"] = json!({});
            }
            edit(object);
        });
        world.settle_at(0).await;
        assert!(world.box_api.names(JOB).is_empty(), "{at}");
        assert_eq!(world.owner_remediated(), [Value::Null, Value::Null], "{at}");
    }
}

#[tokio::test]
async fn a_hardware_of_another_machine_is_never_switched_off() {
    let world = World::new(json!({}));
    world.edit(HARDWARE, "nuc1", |host| {
        host["metadata"]["labels"]["v1alpha1.tinkerbell.org/ownerName"] = json!("other");
    });
    world.settle_at(0).await;
    assert!(world.box_api.names(JOB).is_empty());
    assert!(world.owner_remediated()[0]["message"].as_str().unwrap().contains("no Hardware"));
}

#[tokio::test]
async fn a_job_that_ended_before_a_crash_is_counted_once() {
    let world = World::new(json!({}));
    world.settle_at(0).await;
    world.end_job("Completed");
    let job = world.box_api.peek(JOB, &world.box_api.names(JOB)[0]).unwrap();
    world.settle_at(1).await;
    // The status was written, and the Job was not yet deleted.
    world.box_api.put(JOB, job);
    world.settle_at(2).await;
    assert_eq!(world.status()["powerCycles"], 1);
    assert!(world.box_api.names(JOB).is_empty());
}

#[tokio::test]
async fn a_request_that_ends_takes_its_job_along() {
    for is_vanished in [true, false] {
        let world = World::new(json!({}));
        world.settle_at(0).await;
        assert_eq!(world.box_api.names(JOB).len(), 1);
        let key = ObjectKey::new("default", "worker");
        if is_vanished {
            world.management.delete(TINKERBELL_REMEDIATION, &key).await.unwrap();
        } else {
            world.edit(MACHINE_V1BETA2, "worker", |machine| {
                machine["metadata"]["deletionTimestamp"] = json!("2026-11-27T10:00:00Z");
            });
        }
        world.settle_at(1).await;
        assert!(world.box_api.names(JOB).is_empty(), "{is_vanished}");
    }
}

#[tokio::test]
async fn a_moved_machine_waits_for_its_hardware() {
    let world = World::new(json!({}));
    world.edit(TINKERBELL_MACHINE, "infra-1", |machine| machine["status"] = json!({}));
    assert_eq!(world.settle_at(0).await, Requeue::After(Duration::from_secs(30)));
    assert!(world.box_api.names(JOB).is_empty());
    assert_eq!(world.owner_remediated(), [Value::Null, Value::Null]);
}
