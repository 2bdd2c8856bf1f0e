use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::bmc::JOB;
use api::meta::ObjectKey;
use api::state::agents::{Agents, Life};
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use stdx::{Clock as _, TestClock};

use super::{Deadlines, Timeouts, WorkflowReconciler};
use crate::ages::Ages;
use crate::runtime::Reconciler as _;
use objects::Objects as _;
use objects::fake::Memory;

const TEMPLATE_TEXT: &str = "name: install\nglobal_timeout: 600\ntasks:\n- name: os\n  worker: \
    \"{{.device_1}}\"\n  actions:\n  - name: stream\n    image: image2disk:v1\n    timeout: 60\n";

/// Fake agents: their liveness, and the workflows of the machine.
struct FakeAgents(Mutex<Life>, Mutex<Option<Vec<ObjectKey>>>);

impl Agents for FakeAgents {
    fn life(&self, _agent_id: &str) -> Life {
        *self.0.lock().unwrap()
    }

    fn workflows_of(&self, _hardware: &ObjectKey) -> Option<Vec<ObjectKey>> {
        self.1.lock().unwrap().clone()
    }
}

struct World {
    memory: Arc<Memory>,
    clock: TestClock,
    agents: Arc<FakeAgents>,
    key: ObjectKey,
    deadlines: Arc<Deadlines>,
    ages: Arc<Ages>,
}

impl World {
    fn new(boot_options: Value) -> Self {
        let memory = Arc::new(Memory::default());
        memory.put(
            HARDWARE,
            json!({
                "metadata": { "name": "nuc1", "namespace": "default" },
                "spec": {
                    "bmcRef": { "kind": "Machine", "name": "bmc1" },
                    "interfaces": [{ "dhcp": { "mac": "52:54:00:77:00:01", "uefi": true } }],
                },
            }),
        );
        let key = memory.put(
            WORKFLOW,
            json!({
                "metadata": { "name": "wf", "namespace": "default" },
                "spec": {
                    "templateRef": "install",
                    "hardwareRef": "nuc1",
                    "hardwareMap": { "device_1": "52:54:00:77:00:01" },
                    "bootOptions": boot_options,
                },
            }),
        );
        let start = Timestamp::UNIX_EPOCH;
        let (listening_since, any_heard) = (Duration::ZERO, Duration::ZERO);
        let life = Life { heard: None, listening_since, beats: true, any_heard, at_work: 1 };
        let agents = Arc::new(FakeAgents(Mutex::new(life), Mutex::default()));
        let (clock, deadlines, ages) = (TestClock::at(start), Arc::default(), Arc::default());
        let world = Self { memory, clock, agents, key, deadlines, ages };
        world.template();
        world
    }

    fn template(&self) {
        self.memory.put(
            TEMPLATE,
            json!({
                "metadata": { "name": "install", "namespace": "default" },
                "spec": { "data": TEMPLATE_TEXT },
            }),
        );
    }

    fn reconciler(&self) -> WorkflowReconciler {
        WorkflowReconciler {
            objects: self.memory.clone(),
            agents: self.agents.clone(),
            references: self.agents.clone(),
            clock: Arc::new(self.clock.clone()),
            timeouts: Timeouts { agent: Duration::from_secs(60), boot: Duration::from_secs(300) },
            deadlines: self.deadlines.clone(),
            ages: self.ages.clone(),
            locks: Arc::default(),
        }
    }

    /// Reconciles until nothing changes, with a new reconciler each time, as after a restart.
    async fn settle(&self) {
        for _ in 0..20 {
            let before = self.memory.peek(WORKFLOW, "wf");
            let jobs = self.memory.names(JOB);
            let reconciler = self.reconciler();
            reconciler.reconcile(&self.key).await.unwrap();
            if before == self.memory.peek(WORKFLOW, "wf") && jobs == self.memory.names(JOB) {
                return;
            }
        }
        panic!("does not settle: {:#}", self.workflow());
    }

    fn workflow(&self) -> Value {
        self.memory.peek(WORKFLOW, "wf").unwrap()
    }

    fn state(&self) -> String {
        self.workflow()["status"]["state"].as_str().unwrap_or("").to_owned()
    }

    async fn set_status(&self, change: impl FnOnce(&mut Value)) {
        let mut workflow = self.workflow();
        change(&mut workflow["status"]);
        self.memory.update_status(WORKFLOW, workflow).await.unwrap();
    }

    async fn end_job(&self, name: &str, condition: &str) {
        let mut job = self.memory.peek(JOB, name).unwrap();
        job["status"] = json!({
            "conditions": [{ "type": condition, "status": "True", "message": "because" }],
            "completionTime": self.clock.now(),
        });
        self.memory.update_status(JOB, job).await.unwrap();
    }

    fn allow_pxe(&self) -> Value {
        let hardware = self.memory.peek(HARDWARE, "nuc1").unwrap();
        hardware["spec"]["interfaces"][0]["netboot"]["allowPXE"].clone()
    }

    fn has_condition(&self, kind: &str) -> bool {
        let workflow = self.workflow();
        let conditions = workflow["status"]["conditions"].as_array();
        conditions.is_some_and(|list| list.iter().any(|it| it["type"] == kind))
    }

    fn condition(&self, kind: &str) -> Value {
        let workflow = self.workflow();
        let conditions = workflow["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|it| it["type"] == kind).unwrap_or_default()
    }

    fn hear(&self) {
        self.agents.0.lock().unwrap().heard = Some(self.clock.steady());
    }

    fn advance(&self, secs: i64) {
        self.clock.advance(SignedDuration::from_secs(secs));
    }
}

fn at_work(status: &mut Value) {
    status["state"] = json!("RUNNING");
    status["currentState"] = json!({ "state": "RUNNING" });
}

fn netboot() -> Value {
    json!({ "toggleAllowNetboot": true, "bootMode": "netboot" })
}

#[tokio::test]
async fn the_whole_walk() {
    let world = World::new(netboot());
    world.settle().await;
    assert_eq!(world.state(), "PREPARING");
    assert_eq!(world.allow_pxe(), true);
    let job = world.memory.peek(JOB, "netboot-wf").unwrap();
    assert_eq!(
        job["spec"]["tasks"],
        json!([
            { "powerAction": "off" },
            { "oneTimeBootDeviceAction": { "device": ["pxe"], "efiBoot": true } },
            { "powerAction": "on" },
        ])
    );
    world.end_job("netboot-wf", "Completed").await;
    world.settle().await;
    assert_eq!(world.state(), "PENDING");
    world.set_status(|status| status["state"] = json!("POST")).await;
    world.settle().await;
    assert_eq!(world.state(), "SUCCESS");
    assert_eq!(world.allow_pxe(), false);
}

#[tokio::test]
async fn a_machine_boots_from_an_iso_image_and_ejects_it_afterwards() {
    let world = World::new(json!({ "bootMode": "isoboot", "isoURL": "http://10.0.0.1/a.iso" }));
    world.settle().await;
    let media = |url: &str| json!({ "virtualMediaAction": { "kind": "CD", "mediaURL": url } });
    let job = world.memory.peek(JOB, "iso-mount-wf").unwrap();
    assert_eq!(
        job["spec"]["tasks"],
        json!([
            { "powerAction": "off" },
            media(""),
            media("http://10.0.0.1/a.iso"),
            { "oneTimeBootDeviceAction": { "device": ["cdrom"], "efiBoot": true } },
            { "powerAction": "on" },
        ])
    );
    world.end_job("iso-mount-wf", "Completed").await;
    world.settle().await;
    world.set_status(|status| status["state"] = json!("POST")).await;
    world.settle().await;
    let job = world.memory.peek(JOB, "iso-eject-wf").unwrap();
    assert_eq!(job["spec"]["tasks"], json!([media("")]));
    let world = World::new(json!({ "bootMode": "isoboot" }));
    world.settle().await;
    assert_eq!(world.state(), "FAILED");
}

#[tokio::test]
async fn a_template_may_come_later() {
    let world = World::new(json!({}));
    world.memory.delete(TEMPLATE, &ObjectKey::new("default", "install")).await.unwrap();
    world.settle().await;
    assert_eq!(world.state(), "");
    assert_eq!(world.workflow()["status"]["templateRendering"], "failed");
    world.template();
    world.settle().await;
    assert_eq!(world.state(), "PENDING");
    assert_eq!(world.workflow()["status"]["agentID"], "52:54:00:77:00:01");
}

#[tokio::test]
async fn a_failed_boot_job_fails_the_workflow_and_tidies_up() {
    let world = World::new(netboot());
    world.settle().await;
    world.end_job("netboot-wf", "Failed").await;
    world.advance(5);
    world.settle().await;
    assert_eq!(world.state(), "FAILED");
    assert_eq!(world.allow_pxe(), false);
    let conditions = world.workflow()["status"]["conditions"].as_array().unwrap().clone();
    let forbidden = conditions.iter().find(|it| it["type"] == "AllowNetbootFalse").unwrap();
    assert_eq!(forbidden["time"], json!(world.clock.now()), "when it happened");
}

#[tokio::test]
async fn a_job_of_an_earlier_workflow_is_replaced() {
    let world = World::new(netboot());
    world.memory.put(
        JOB,
        json!({
            "metadata": { "name": "netboot-wf", "namespace": "default", "uid": "old" },
            "status": { "conditions": [{ "type": "Completed", "status": "True" }] },
        }),
    );
    world.settle().await;
    assert_eq!(world.state(), "PREPARING");
    assert_ne!(world.memory.peek(JOB, "netboot-wf").unwrap()["metadata"]["uid"], "old");
}

#[tokio::test]
async fn the_global_clock_is_the_boxs_own() {
    let world = World::new(json!({}));
    world.settle().await;
    let stop = world.clock.now().checked_add(SignedDuration::from_secs(600)).unwrap();
    world
        .set_status(|status| {
            status["state"] = json!("RUNNING");
            status["globalExecutionStop"] = json!(stop);
        })
        .await;
    world.settle().await;
    world.advance(599);
    world.settle().await;
    assert_eq!(world.state(), "RUNNING");
    world.advance(2);
    world.settle().await;
    assert_eq!(world.state(), "TIMEOUT");
}

#[tokio::test]
async fn a_second_workflow_waits_for_the_machine() {
    let world = World::new(netboot());
    world.memory.put(
        WORKFLOW,
        json!({
            "metadata": { "name": "earlier", "namespace": "default" },
            "spec": { "hardwareRef": "nuc1" },
            "status": { "state": "RUNNING" },
        }),
    );
    world.settle().await;
    assert_eq!(world.state(), "PREPARING");
    assert!(world.memory.names(JOB).is_empty(), "nobody's power is touched");
    assert!(world.has_condition("Waiting"), "it says why");
    let key = ObjectKey::new("default", "earlier");
    world.memory.delete(WORKFLOW, &key).await.unwrap();
    world.settle().await;
    assert_eq!(world.memory.names(JOB), ["netboot-wf"]);
    assert!(!world.has_condition("Waiting"), "and no longer");
}

#[tokio::test]
async fn an_error_of_the_bmc_is_shown_once_during_the_boot() {
    let world = World::new(netboot());
    world.settle().await;
    let error = "BMC 10.77.0.101:623 did not respond";
    for running in ["task 0 of 3", "task 1 of 3"] {
        let mut job = world.memory.peek(JOB, "netboot-wf").unwrap();
        job["status"] = json!({ "conditions": [
            { "type": "Running", "status": "True", "message": running },
            { "type": "BmcError", "status": "True", "message": error },
        ] });
        world.memory.update_status(JOB, job).await.unwrap();
        world.settle().await;
    }
    assert_eq!(world.state(), "PREPARING");
    assert_eq!(world.condition("BmcError")["message"], error);
    let events = world.memory.happenings.lock().unwrap().clone();
    let errors = events.iter().filter(|it| it.reason == "BmcError" && it.message == error);
    assert_eq!(errors.count(), 1, "{events:?}");
    world.end_job("netboot-wf", "Completed").await;
    world.settle().await;
    assert_eq!(world.state(), "PENDING");
    assert!(!world.has_condition("BmcError"));
}

#[tokio::test]
async fn hardware_without_a_bmc_is_told_so() {
    let world = World::new(netboot());
    let mut hardware = world.memory.peek(HARDWARE, "nuc1").unwrap();
    hardware["spec"]["bmcRef"] = Value::Null;
    world.memory.update(HARDWARE, hardware).await.unwrap();
    world.settle().await;
    assert_eq!(world.state(), "FAILED");
    let events = world.memory.happenings.lock().unwrap();
    assert!(events.iter().any(|it| it.warning && it.message.contains("no bmcRef")), "{events:?}");
}

#[tokio::test]
async fn disabled_is_left_alone() {
    let world = World::new(netboot());
    let mut workflow = world.workflow();
    workflow["spec"]["disabled"] = json!(true);
    world.memory.update(WORKFLOW, workflow).await.unwrap();
    world.settle().await;
    assert_eq!(world.state(), "");
}

mod references;
mod requests;
mod silence;
mod turns;
