use std::sync::Arc;

use agent_rpc::Progress as Said;
use api::tinkerbell::State;
use serde_json::json;
use status::view::Trouble;

use super::*;

fn known(state: State, running: &str) -> MachineFacts {
    let hardware = serde_json::from_value(json!({
        "metadata": { "name": "nuc-04", "namespace": "default" },
        "spec": { "interfaces": [{ "dhcp": { "mac": "52:54:00:77:00:04" } }] },
    }));
    let work = Work {
        name: "wf-12".into(),
        state,
        step: "image2disk".into(),
        attempt: 1,
        attempts_max: 1,
        ..Work::default()
    };
    let course = WorkflowProgress { work, running: running.to_owned() };
    MachineFacts {
        hardware: Arc::new(hardware.unwrap()),
        course: Some(course.into()),
        ..MachineFacts::default()
    }
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn a_workflow_makes_its_machines_word() {
    use MachineState::{Failed, InService, Installing, TimedOut, Waiting};
    let cases = [
        (State::New, Waiting, ""),
        (State::Preparing, Waiting, "waits for its BMC"),
        (State::Pending, Waiting, "waits for its boot: switch it on"),
        (State::Running, Installing, "image2disk"),
        (State::Post, Installing, "finishing"),
        (State::Success, InService, ""),
        (State::Failed, Failed, "image2disk"),
        (State::Timeout, TimedOut, "image2disk"),
    ];
    for (state, word, step) in cases {
        let machine = known(state, "a1").machine();
        assert_eq!((machine.state, machine.step.as_str()), (word, step), "{state:?}");
        assert_eq!(machine.workflow.as_str(), "wf-12");
    }
}

#[test]
fn other_things_make_it_too() {
    let changed = |change: &dyn Fn(&mut Work)| {
        let mut known = known(State::New, "");
        let mut course = WorkflowProgress::clone(known.course.as_ref().unwrap());
        change(&mut course.work);
        known.course = Some(course.into());
        known.machine().state
    };
    assert_eq!(changed(&|work| work.held = true), MachineState::Held);
    assert_eq!(changed(&|work| work.trouble = Some(Trouble::default())), MachineState::Failed);
    let mut off = known(State::Success, "");
    off.power = Power::Off;
    assert_eq!(off.machine().state, MachineState::Off);
    off.course = None;
    assert_eq!(off.machine().state, MachineState::Off);
    off.power = Power::Unknown;
    assert_eq!(off.machine().state, MachineState::Ready);
    let mut leaving = Hardware::clone(&off.hardware);
    leaving.metadata.deletion_timestamp = Some(second(1));
    off.hardware = Arc::new(leaving);
    assert_eq!(off.machine().state, MachineState::Removing);
}

#[test]
fn how_far_an_action_is() {
    let latest = |action: &str| Latest {
        progress: Said {
            agent_id: "52:54:00:77:00:04".into(),
            workflow_id: "default/wf-12".into(),
            task_id: "t1".into(),
            action_id: action.into(),
            bytes_done: 300,
            bytes_total: 1_000,
            message: String::new(),
            output: Vec::new(),
        },
        since: second(10),
        at: second(13),
    };
    let mut known = known(State::Running, "a1");
    let course = Arc::clone(known.course.as_ref().unwrap());
    assert_eq!(of(&latest("a0"), &course), None, "of the action before it");
    known.progress = of(&latest("a1"), &course);
    let machine = known.machine();
    assert_eq!((machine.percent, machine.bytes_per_second), (Some(30), Some(100)));
    assert_eq!((machine.bytes_done, machine.millis_left), (300, Some(7_000)));
    assert_eq!(machine.status(), "Installing 30 %");
}

#[test]
fn who_only_asked_is_new() {
    let client = |last: u8, hardware: &str| DhcpClient {
        mac: stdx::MacAddr([2, 0, 0, 0, 0, last]),
        hardware: hardware.to_owned(),
        asked: second(last.into()),
        decision: "not answered: no Hardware".to_owned(),
    };
    let found = unknown_machines(&[client(1, "default/nuc-04"), client(2, "")]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name.as_str(), "02:00:00:00:00:02");
    assert_eq!((found[0].state, found[0].last_seen), (MachineState::New, Some(second(2))));
    let many: Vec<DhcpClient> = (0..=255).map(|last| client(last, "")).collect();
    assert_eq!(unknown_machines(&many).len(), NEW_MAX);
}

#[test]
fn what_goes_on_stands_first() {
    let course = |name: &str, state, at| {
        let work = Work { name: name.into(), state, since: Some(second(at)), ..Work::default() };
        (
            ObjectKey::new("default", name),
            Arc::new(WorkflowProgress { work, running: String::new() }),
        )
    };
    let all = vec![
        course("old", State::Success, 1),
        course("new", State::Failed, 9),
        course("runs", State::Running, 3),
    ];
    let names: Vec<String> = works(all).iter().map(|work| work.name.to_string()).collect();
    assert_eq!(names, ["runs", "new", "old"]);
}
