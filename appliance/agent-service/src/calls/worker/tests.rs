//! Tests of the conversion from names to IDs, and of fields that older workers omit.

use agent_rpc::{ActionState, NamedReport, Refusal};
use api::tinkerbell::{ActionState as State, ActionStatus, TaskStatus, Workflow};

use super::{NO_REASON, go_duration, report_by_id};

fn workflow(state: State) -> Workflow {
    let action = ActionStatus {
        id: "a1".to_owned(),
        name: "write".to_owned(),
        state,
        ..ActionStatus::default()
    };
    let task = TaskStatus {
        id: "t1".to_owned(),
        name: "install".to_owned(),
        actions: vec![action],
        ..TaskStatus::default()
    };
    let mut workflow = Workflow::default();
    workflow.status.tasks = vec![task];
    workflow
}

fn report_of(state: ActionState) -> NamedReport {
    NamedReport {
        workflow_id: "tink/wf".to_owned(),
        worker_id: "w1".to_owned(),
        task_name: "install".to_owned(),
        action_name: "write".to_owned(),
        state,
        seconds: 62,
        message: String::new(),
    }
}

#[test]
fn names_become_ids() {
    let report = report_by_id(&report_of(ActionState::Success), &workflow(State::Running));
    let report = report.unwrap().unwrap();
    assert_eq!((report.task_id.as_str(), report.action_id.as_str()), ("t1", "a1"));
    assert_eq!((report.agent_id.as_str(), report.duration.as_str()), ("w1", "1m2s"));
    assert_eq!(report.message, "");
    let begun = report_by_id(&report_of(ActionState::Running), &workflow(State::Pending));
    assert_eq!(begun.unwrap().unwrap().duration, "");
}

#[test]
fn a_failure_without_a_reason_says_so() {
    for state in [ActionState::Failed, ActionState::Timeout] {
        let report = report_by_id(&report_of(state), &workflow(State::Running)).unwrap().unwrap();
        assert_eq!(report.message, NO_REASON);
        let with = NamedReport { message: "no disk".to_owned(), ..report_of(state) };
        let report = report_by_id(&with, &workflow(State::Running)).unwrap().unwrap();
        assert_eq!(report.message, "no disk");
    }
}

#[test]
fn the_end_of_an_earlier_attempt_changes_nothing() {
    let late = report_by_id(&report_of(ActionState::Failed), &workflow(State::Pending));
    assert_eq!(late, Ok(None));
}

#[test]
fn nobody_knows_another_action() {
    let other = NamedReport { task_name: "other".to_owned(), ..report_of(ActionState::Running) };
    let refused = report_by_id(&other, &workflow(State::Pending)).unwrap_err();
    let Refusal::NotFound(why) = refused else { panic!("{refused:?}") };
    assert!(why.contains("\"write\"") && why.contains("\"other\""), "{why}");
}

#[test]
fn durations_read_like_go() {
    let cases = [(0, "0s"), (59, "59s"), (62, "1m2s"), (3600, "1h0m0s")];
    for (seconds, text) in cases {
        assert_eq!(go_duration(seconds), text);
    }
}
