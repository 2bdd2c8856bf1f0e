use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use api::bmc::JOB;
use api::meta::Resource;
use api::network::NETWORK;
use api::tinkerbell::{HARDWARE, RETRY_FROM, RETRY_REQUEST, WORKFLOW};
use audit_log::AuditLog;
use machine_actions::Action as Table;
use panel::model::{ACTIONS, Action, MachineAction, MachineOrder, PanelOrder};
use provisioning::objects::EngineObjects;
use provisioning::recorder::recorder;
use resources::{Engine, builtin};
use serde_json::{Value, json};
use status::source::StatusSource as _;
use status::view::StatusView;
use stdx::SystemClock;
use store::{Options, Store};

use super::{IDENTIFY_FOR, IdentifyState, LocalActions, MachineLeds};
use crate::actions::reset;
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
            machine_leds: Arc::new(Leds),
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

    async fn all(&self, resource: Resource) -> Vec<Value> {
        self.actions.objects.list(resource, None).await.unwrap()
    }

    /// Carries out an order. Returns the error, or an empty text on success.
    async fn done(&self, order: PanelOrder) -> String {
        let done = self.actions.do_it(&order).await;
        done.err().map(|error| stdx::chain(&error)).unwrap_or_default()
    }
}

fn on_machine(action: Table, machine: &str, workflow: &str) -> PanelOrder {
    PanelOrder::Machine(MachineOrder {
        action: MachineAction::Table(action),
        machine: machine.to_owned(),
        workflow: workflow.to_owned(),
    })
}

/// Test double of the BMCs: every machine but `bare` has one.
struct Leds;

impl MachineLeds for Leds {
    fn identify<'a>(
        &'a self,
        machine: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        let done =
            if machine == "bare" { Err("This machine has no BMC.".to_owned()) } else { Ok(()) };
        Box::pin(std::future::ready(done))
    }
}

#[tokio::test]
async fn a_rescan_asks_every_network_that_is_served() {
    let rig = Rig::start().await;
    for (name, mode) in [("eth1", "reserved"), ("eth2", "off"), ("eth3", "proxy")] {
        let spec = json!({ "interface": name, "address": "10.77.0.1/24", "mode": mode });
        rig.create(NETWORK, spec, name).await;
    }
    assert_eq!(rig.done(PanelOrder::Box(Action::Rescan)).await, "");
    let asked = |network: &Value| {
        let rearm = network["spec"]["rearm"].as_str().unwrap_or_default();
        rearm.parse::<jiff::Timestamp>().is_ok()
    };
    let asked: Vec<_> = rig.all(NETWORK).await.iter().map(asked).collect();
    assert_eq!(asked, [true, false, true]);
}

#[tokio::test]
async fn a_request_names_the_workflow_that_was_shown() {
    let rig = Rig::start().await;
    rig.create(HARDWARE, json!({}), "nuc-07").await;
    let retry = |machine| on_machine(Table::Retry, machine, "install");
    assert_eq!(rig.done(retry("gone")).await, "machine gone no longer exists");
    assert_eq!(rig.done(retry("nuc-07")).await, "workflow install no longer exists");
    let spec = json!({ "templateRef": "debian", "hardwareRef": "nuc-07" });
    let mut workflow = rig.create(WORKFLOW, spec, "install").await;
    workflow["status"] = json!({ "state": "FAILED" });
    rig.actions.objects.update_status(WORKFLOW, workflow).await.unwrap();
    let mut requests = Vec::new();
    for (action, from) in [(Table::Retry, "failed"), (Table::StartOver, "start")] {
        assert_eq!(rig.done(on_machine(action, "nuc-07", "install")).await, "");
        let annotations = &rig.all(WORKFLOW).await.remove(0)["metadata"]["annotations"];
        assert_eq!(annotations[RETRY_FROM], from);
        requests.push(annotations[RETRY_REQUEST].as_str().unwrap().to_owned());
    }
    assert_ne!(requests[0], requests[1], "each is a request of its own");
    let cancel = rig.done(on_machine(Table::Cancel, "nuc-07", "install")).await;
    assert_eq!(cancel, "cannot cancel workflow install: its state is failed");
}

#[tokio::test]
async fn power_is_switched_by_a_job_of_the_machines_bmc() {
    let rig = Rig::start().await;
    rig.create(HARDWARE, json!({}), "bare").await;
    let bmc = json!({ "bmcRef": { "name": "bmc-03", "kind": "Machine" } });
    rig.create(HARDWARE, bmc, "nuc-03").await;
    let off = |machine| on_machine(Table::PowerOff, machine, "");
    assert_eq!(rig.done(off("bare")).await, "bare has no power control");
    assert_eq!(rig.done(off("nuc-03")).await, "");
    let jobs = rig.all(JOB).await;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!(jobs[0]["spec"]["tasks"], json!([{ "powerAction": "off" }]));
    assert_eq!(jobs[0]["spec"]["machineRef"]["name"], "bmc-03");
}

#[tokio::test]
async fn a_machine_blinks_by_its_bmc() {
    let rig = Rig::start().await;
    let identify = |machine: &str| {
        let (machine, workflow) = (machine.to_owned(), String::new());
        PanelOrder::Machine(MachineOrder { action: MachineAction::Identify, machine, workflow })
    };
    assert_eq!(rig.done(identify("nuc-03")).await, "");
    assert_eq!(rig.done(identify("bare")).await, "This machine has no BMC.");
}

#[tokio::test]
async fn what_is_done_at_the_box_itself_leaves_a_line() {
    let Rig { _folder: folder, actions } = Rig::start().await;
    actions.carry_out_at(PanelOrder::Box(Action::Identify), "panel").await.unwrap();
    let off = on_machine(Table::PowerOff, "nuc9", "");
    let refused = actions.carry_out_at(off, "keyboard").await;
    assert_eq!(refused, Err("machine nuc9 no longer exists".to_owned()));
    // The log is complete when its last user is dropped.
    drop(actions);
    let log = std::fs::read_to_string(folder.path().join("audit/audit.log")).unwrap();
    let entries: Vec<_> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|it| json!([it["from"], it["verb"], it["detail"], it["code"], it["user"]]))
        .collect();
    let done = json!(["panel", Action::Identify.setting(), null, 200, "local"]);
    let failed = json!(["keyboard", "power-off", "nuc9", 500, "local"]);
    assert_eq!(entries, [done, failed], "{log}");
}

#[tokio::test]
async fn the_box_is_sought_for_a_minute() {
    let rig = Rig::start().await;
    let identify_state = rig.actions.identify_state.clone();
    assert!(!identify_state.still());
    rig.actions.carry_out_at(PanelOrder::Box(Action::Identify), "panel").await.unwrap();
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
async fn a_permission_is_not_an_action_on_the_box() {
    let rig = Rig::start().await;
    // Restart and the like end this process, and `reset::tests` has them.
    let others = ACTIONS.into_iter().filter(|action| reset::meant(*action).is_none());
    for action in others {
        let refused = rig.done(PanelOrder::Box(action)).await;
        assert_eq!(refused.is_empty(), action.in_menu(), "{action:?}: {refused}");
    }
}
