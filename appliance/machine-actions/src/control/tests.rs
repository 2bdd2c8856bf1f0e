use std::sync::Arc;

use api::bmc::JOB;
use api::core::CONFIG_MAP;
use api::tinkerbell::{CANCEL_REQUEST, HARDWARE, RETRY_FROM, RETRY_REQUEST, TEMPLATE, WORKFLOW};
use objects::Objects as _;
use objects::fake::Memory;
use serde_json::{Value, json};
use stdx::Hint as _;

use super::{ActionRequest, MachineActions};
use crate::action::Action;

fn object(name: &str, namespace: &str, spec: Value, status: Value) -> Value {
    let metadata = json!({ "name": name, "namespace": namespace });
    json!({ "metadata": metadata, "spec": spec, "status": status })
}

/// Returns a machine with a BMC and a workflow in this state.
fn world(state: &str) -> (Arc<Memory>, MachineActions) {
    let memory = Arc::new(Memory::default());
    let reference = json!({ "bmcRef": { "kind": "Machine", "name": "bmc-nuc1" } });
    memory.put(HARDWARE, object("nuc1", "lab", reference, json!({})));
    memory.put(HARDWARE, object("bare", "lab", json!({}), json!({})));
    let spec = json!({ "hardwareRef": "nuc1", "templateRef": "debian" });
    let end = json!({ "time": "2026-11-28T10:00:00Z", "reason": "ActionFailed" });
    let status = json!({ "state": state, "attempts": 1, "ended": end });
    memory.put(WORKFLOW, object("install", "lab", spec, status));
    let actions = MachineActions { objects: memory.clone() };
    (memory, actions)
}

fn request(action: Action, id: &str) -> ActionRequest {
    let (machine, workflow) = ("nuc1".to_owned(), "install".to_owned());
    ActionRequest { action, machine, workflow, id: id.to_owned() }
}

async fn workflow(memory: &Memory) -> Value {
    memory.list(WORKFLOW, None).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_failed_workflow_is_retried_or_starts_over() {
    let (memory, actions) = world("FAILED");
    for (action, from) in [(Action::Retry, "failed"), (Action::StartOver, "start")] {
        actions.request(&request(action, "ab12")).await.unwrap();
        let annotations = &workflow(&memory).await["metadata"]["annotations"];
        assert_eq!(annotations[RETRY_REQUEST], "ab12");
        assert_eq!(annotations[RETRY_FROM], from);
    }
}

#[tokio::test]
async fn a_running_workflow_is_paused_resumed_and_canceled() {
    let (memory, actions) = world("RUNNING");
    actions.request(&request(Action::Pause, "a")).await.unwrap();
    assert_eq!(workflow(&memory).await["spec"]["paused"], true);
    actions.request(&request(Action::Resume, "b")).await.unwrap();
    assert!(workflow(&memory).await["spec"].get("paused").is_none(), "as before the pause");
    actions.request(&request(Action::Cancel, "c")).await.unwrap();
    assert_eq!(workflow(&memory).await["metadata"]["annotations"][CANCEL_REQUEST], "c");
}

#[tokio::test]
async fn a_dismissal_is_of_one_failure_only() {
    let (memory, actions) = world("FAILED");
    actions.request(&request(Action::Dismiss, "a")).await.unwrap();
    let dismissed =
        |object: Value| status::view::Work::of(&serde_json::from_value(object).unwrap()).dismissed;
    let mut object = workflow(&memory).await;
    assert!(dismissed(object.clone()));
    object["status"]["attempts"] = 2.into();
    assert!(!dismissed(object), "the next attempt failed again");
}

#[tokio::test]
async fn an_action_that_the_state_does_not_permit_changes_nothing() {
    for (state, word, action) in [
        ("", "its state is new", Action::Retry),
        ("RUNNING", "its state is running", Action::Retry),
        ("RUNNING", "its state is running", Action::StartOver),
        ("RUNNING", "its state is running", Action::Dismiss),
        ("SUCCESS", "its state is succeeded", Action::Retry),
        ("FAILED", "its state is failed", Action::Cancel),
        ("SUCCESS", "its state is succeeded", Action::Pause),
        ("POST", "its state is finishing", Action::Cancel),
    ] {
        let (memory, actions) = world(state);
        let before = workflow(&memory).await;
        let error = actions.request(&request(action, "a")).await.unwrap_err();
        assert!(error.to_string().ends_with(word), "{error}");
        assert_eq!(error.hint(), Some("reload the page"));
        assert_eq!(workflow(&memory).await, before);
    }
}

#[tokio::test]
async fn a_request_names_the_machine_and_its_own_workflow() {
    let (memory, actions) = world("FAILED");
    let of = |machine: &str, workflow: &str| ActionRequest {
        machine: machine.to_owned(),
        workflow: workflow.to_owned(),
        ..request(Action::Retry, "a")
    };
    for (machine, workflow, why) in [
        ("gone", "install", "machine gone no longer exists"),
        ("nuc1", "other", "workflow other no longer exists"),
        ("nuc1", "", "workflow  no longer exists"),
        ("bare", "install", "workflow install is not of machine bare"),
    ] {
        let error = actions.request(&of(machine, workflow)).await.unwrap_err();
        assert_eq!(error.to_string(), why);
    }
    memory.put(HARDWARE, object("nuc1", "attic", json!({}), json!({})));
    let error = actions.request(&of("nuc1", "install")).await.unwrap_err().to_string();
    assert_eq!(error, "several machines are called nuc1: attic/nuc1, lab/nuc1");
}

#[tokio::test]
async fn one_request_of_power_makes_one_job() {
    let (memory, actions) = world("SUCCESS");
    for _ in 0..2 {
        actions.request(&request(Action::PowerOff, "ab12")).await.unwrap();
    }
    let jobs = memory.list(JOB, None).await.unwrap();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0]["metadata"]["name"], "bmc-nuc1-power-off-ab12");
    assert_eq!(jobs[0]["spec"]["tasks"], json!([{ "powerAction": "off" }]));
    assert_eq!(jobs[0]["spec"]["machineRef"], json!({ "name": "bmc-nuc1", "namespace": "lab" }));
    actions.request(&request(Action::PowerOn, "cd34")).await.unwrap();
    assert_eq!(memory.list(JOB, None).await.unwrap().len(), 2);
    let bare = ActionRequest { machine: "bare".to_owned(), ..request(Action::PowerOn, "e") };
    let error = actions.request(&bare).await.unwrap_err();
    assert_eq!(error.to_string(), "bare has no power control");
}

#[tokio::test]
async fn an_installation_is_never_requested_without_its_form() {
    let (memory, actions) = world("SUCCESS");
    for action in [Action::Install, Action::Add] {
        assert!(actions.request(&request(action, "a")).await.is_err());
    }
    assert_eq!(memory.list(WORKFLOW, None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn every_listed_disk_is_erased_by_a_workflow_of_its_own() {
    let (memory, actions) = world("SUCCESS");
    let erase = || request(Action::Erase, "ab12");
    let refused = actions.request(&erase()).await.unwrap_err().to_string();
    assert!(refused.ends_with("its Hardware lists no disk"), "{refused}");
    let spec = json!({
        "interfaces": [{ "dhcp": { "mac": "52:54:00:77:00:01" } }],
        "disks": [{ "device": "/dev/sda" }, { "device": "/dev/nvme0n1" }],
    });
    memory.put(HARDWARE, object("nuc1", "lab", spec.clone(), json!({})));
    actions.request(&erase()).await.unwrap();
    actions.request(&erase()).await.unwrap();
    let all = memory.list(WORKFLOW, None).await.unwrap();
    let made: Vec<&Value> =
        all.iter().filter(|it| it["metadata"]["name"] == "nuc1-erase-ab12").collect();
    assert_eq!(made.len(), 1, "the same request twice has one effect");
    assert_eq!(made[0]["spec"]["hardwareMap"]["device_1"], "52:54:00:77:00:01");
    assert!(made[0]["spec"].get("bootOptions").is_none(), "it has no BMC");
    let hardware = memory.list(HARDWARE, None).await.unwrap();
    let nuc1 = hardware.iter().find(|it| it["metadata"]["name"] == "nuc1").unwrap();
    assert_eq!(nuc1["spec"]["interfaces"][0]["netboot"]["allowPXE"], true);
    let templates = memory.list(TEMPLATE, None).await.unwrap();
    let data = templates[0]["spec"]["data"].as_str().unwrap();
    let map = [("device_1".to_owned(), "a".to_owned())].into();
    let rendered = template::render(data, &api::document::data(&map, nuc1)).unwrap();
    for disk in ["/dev/sda", "/dev/nvme0n1"] {
        assert!(rendered.contains(&format!("BLOCK_DEVICE: \"{disk}\"")), "{rendered}");
    }
    let mut owned = object("nuc1", "lab", spec, json!({}));
    owned["metadata"]["labels"][api::infrastructure::OWNER_NAME] = "edge-1".into();
    memory.put(HARDWARE, owned);
    let refused = actions.request(&request(Action::Erase, "cd34")).await.unwrap_err();
    assert!(refused.to_string().contains("belongs to machine edge-1"), "{refused}");
}

#[tokio::test]
async fn an_unknown_machine_is_ignored_and_a_known_one_is_not() {
    let (memory, actions) = world("SUCCESS");
    let ignore = |machine: &str| ActionRequest::new(Action::Ignore, machine, "");
    actions.request(&ignore("54:b2:03:a1:4c:01")).await.unwrap();
    let stored = memory.peek(CONFIG_MAP, "dismissed").unwrap();
    assert_eq!(stored["data"], json!({ "machine.54-b2-03-a1-4c-01": "ignored" }));
    let refused = actions.request(&ignore("nuc1")).await.unwrap_err();
    assert_eq!(
        stdx::sentences(&refused),
        "Nuc1 is not the MAC address of an unknown machine, so it cannot be ignored. Delete its \
         Hardware to remove the machine."
    );
}
