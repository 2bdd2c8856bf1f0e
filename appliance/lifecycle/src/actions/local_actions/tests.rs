use std::sync::Arc;
use std::time::Instant;

use api::bmc::JOB;
use api::meta::{ObjectKey, Resource};
use api::network::NETWORK;
use api::tinkerbell::{HARDWARE, RETRY_REQUEST, WORKFLOW};
use audit_log::AuditLog;
use config::panel::DOES;
use objects::read;
use panel::model::{ACTIONS, Action, PanelOrder};
use provisioning::index::Index;
use provisioning::objects::EngineObjects;
use provisioning::recorder::recorder;
use resources::{Engine, builtin};
use serde_json::{Value, json};
use status::source::StatusSource as _;
use status::view::StatusView;
use stdx::SystemClock;
use store::{Options, Store};

use super::{IDENTIFY_FOR, IdentifyState, LocalActions};
use crate::audit::Audit;

/// Actions of a box over a real store and its API.
struct Rig {
    _folder: tempfile::TempDir,
    actions: LocalActions,
}

impl Rig {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("objects.redb"), Options::default()).unwrap();
        let engine = Engine::new(store, builtin::registry().unwrap(), Arc::new(SystemClock));
        engine.ensure_permanent().await.unwrap();
        let (recorder, _writer) = recorder();
        let actions = LocalActions {
            objects: Arc::new(EngineObjects { engine, recorder }),
            index: Index::default(),
            clock: Arc::new(SystemClock),
            identify_state: IdentifyState::default(),
            audit: Audit::new(AuditLog::open(folder.path()).unwrap(), Arc::new(SystemClock)),
        };
        Self { _folder: folder, actions }
    }

    async fn create(&self, resource: Resource, spec: Value, name: &str) -> Value {
        let mut object = json!({
            "apiVersion": resource.api_version(),
            "kind": resource.kind,
            "metadata": { "name": name },
            "spec": spec,
        });
        if resource != NETWORK {
            object["metadata"]["namespace"] = "default".into();
        }
        self.actions.objects.create(resource, object).await.unwrap()
    }

    async fn machine(&self, name: &str, spec: Value) {
        let hardware = self.create(HARDWARE, spec, name).await;
        self.actions.index.put_hardware(read(hardware).unwrap());
    }

    async fn all(&self, resource: Resource) -> Vec<Value> {
        self.actions.objects.list(resource, None).await.unwrap()
    }

    /// Runs an action. Returns the error, or an empty text on success.
    async fn asked(&self, action: Action, machine: &str) -> String {
        let machine = (!machine.is_empty()).then(|| machine.to_owned());
        let done = self.actions.do_it(action, machine).await;
        done.err().map(|error| stdx::chain(&error)).unwrap_or_default()
    }
}

#[tokio::test]
async fn a_rescan_asks_every_network_that_is_served() {
    let rig = Rig::start().await;
    for (name, mode) in [("eth1", "reserved"), ("eth2", "off"), ("eth3", "proxy")] {
        let spec = json!({ "interface": name, "address": "10.77.0.1/24", "mode": mode });
        rig.create(NETWORK, spec, name).await;
    }
    assert_eq!(rig.asked(Action::Rescan, "").await, "");
    let asked = |network: &Value| {
        let rearm = network["spec"]["rearm"].as_str().unwrap_or_default();
        rearm.parse::<jiff::Timestamp>().is_ok()
    };
    let asked: Vec<_> = rig.all(NETWORK).await.iter().map(asked).collect();
    assert_eq!(asked, [true, false, true]);
}

#[tokio::test]
async fn a_retry_is_asked_of_the_machines_last_workflow() {
    let rig = Rig::start().await;
    rig.machine("nuc-07", json!({})).await;
    let no_workflow = "nuc-07 has no workflow to try again";
    assert_eq!(rig.asked(Action::Retry, "nuc-07").await, no_workflow);
    assert_eq!(rig.asked(Action::Retry, "gone").await, "machine gone no longer exists");
    let spec = json!({ "templateRef": "debian", "hardwareRef": "nuc-07" });
    let mut workflow = rig.create(WORKFLOW, spec, "install").await;
    workflow["status"] = json!({ "state": "FAILED" });
    let workflow = rig.actions.objects.update_status(WORKFLOW, workflow).await.unwrap();
    let typed = read(workflow).unwrap();
    rig.actions.index.put_workflow(&typed);
    rig.actions.index.runs.put(&typed);
    let mut requests = Vec::new();
    for _ in 0..2 {
        assert_eq!(rig.asked(Action::Retry, "nuc-07").await, "");
        let workflow = rig.all(WORKFLOW).await.remove(0);
        let request = workflow["metadata"]["annotations"][RETRY_REQUEST].as_str().unwrap();
        requests.push(request.to_owned());
    }
    assert_ne!(requests[0], requests[1], "each is a request of its own");
}

#[tokio::test]
async fn a_machine_is_switched_to_what_it_is_not() {
    let rig = Rig::start().await;
    rig.machine("bare", json!({})).await;
    assert!(rig.asked(Action::MachinePower, "bare").await.starts_with("bare has no BMC"));
    rig.machine("nuc-03", json!({ "bmcRef": { "name": "bmc-03", "kind": "Machine" } })).await;
    let bmc = ObjectKey::new("default", "bmc-03");
    let unknown = "the power state of nuc-03 is unknown: its BMC does not respond";
    assert_eq!(rig.asked(Action::MachinePower, "nuc-03").await, unknown);
    for (state, word) in [("on", "off"), ("off", "on")] {
        rig.actions.index.put_power(bmc.clone(), Some(state), None);
        assert_eq!(rig.asked(Action::MachinePower, "nuc-03").await, "");
        let jobs = rig.all(JOB).await;
        let asked = |job: &&Value| job["spec"]["tasks"] == json!([{ "powerAction": word }]);
        let job = jobs.iter().find(asked).unwrap_or_else(|| panic!("{jobs:?}"));
        assert_eq!(job["spec"]["machineRef"]["name"], "bmc-03");
        let name = job["metadata"]["name"].as_str().unwrap();
        assert!(name.starts_with(&format!("bmc-03-power-{word}-")), "{name}");
    }
    assert_eq!(rig.all(JOB).await.len(), 2);
}

#[tokio::test]
async fn what_is_done_at_the_box_itself_leaves_a_line() {
    let Rig { _folder: folder, actions } = Rig::start().await;
    let order =
        |action, machine: Option<&str>| PanelOrder { action, machine: machine.map(Into::into) };
    actions.carry_out_at(order(Action::Identify, None), "panel").await;
    actions.carry_out_at(order(Action::MachinePower, Some("nuc9")), "keyboard").await;
    // The log is complete when its last user is dropped.
    drop(actions);
    let log = std::fs::read_to_string(folder.path().join("audit/audit.log")).unwrap();
    let entries: Vec<_> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|it| json!([it["from"], it["verb"], it["detail"], it["code"], it["user"]]))
        .collect();
    let done = json!(["panel", Action::Identify.setting(), null, 200, "local"]);
    let failed = json!(["keyboard", Action::MachinePower.setting(), "nuc9", 500, "local"]);
    assert_eq!(entries, [done, failed], "{log}");
}

#[tokio::test]
async fn the_box_is_sought_for_a_minute() {
    let rig = Rig::start().await;
    let identify_state = rig.actions.identify_state.clone();
    assert!(!identify_state.still());
    rig.actions.carry_out_at(PanelOrder { action: Action::Identify, machine: None }, "panel").await;
    let mut view = StatusView::default();
    identify_state.fill(&mut view).await;
    assert!(view.identifying);
    identify_state.since(Instant::now() - IDENTIFY_FOR / 2);
    assert!(identify_state.still());
    identify_state.since(Instant::now() - IDENTIFY_FOR);
    identify_state.fill(&mut view).await;
    assert!(!view.identifying);
}

#[tokio::test]
async fn what_the_box_does_not_do_is_told() {
    let rig = Rig::start().await;
    for action in ACTIONS.into_iter().filter(|action| !DOES.contains(action)) {
        assert_eq!(
            rig.asked(action, "").await,
            "this version does not support the action",
            "{action:?}"
        );
    }
    let order = ACTIONS.into_iter().filter(|action| DOES.contains(action));
    assert!(order.eq(DOES), "in the menu's order");
}
