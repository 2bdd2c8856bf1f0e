use super::{ServeDecision, came_back, environment, serve, unwanted, volumes};
use crate::state::workflow::STATES;
use crate::tinkerbell::{ActionState, ActionStatus, State, TaskStatus, WorkflowStatus};
use jiff::{SignedDuration, Timestamp};

fn action(name: &str, state: ActionState) -> ActionStatus {
    ActionStatus { id: name.into(), name: name.into(), state, ..Default::default() }
}

fn status(state: State, tasks: &[(&str, &[ActionState])]) -> WorkflowStatus {
    let tasks = tasks
        .iter()
        .map(|(agent, states)| TaskStatus {
            id: format!("task-{agent}"),
            agent_id: (*agent).into(),
            actions: states
                .iter()
                .enumerate()
                .map(|(at, state)| action(&format!("{agent}{at}"), *state))
                .collect(),
            ..Default::default()
        })
        .collect();
    WorkflowStatus { state, tasks, ..Default::default() }
}

fn served(status: &WorkflowStatus, agent: &str) -> Option<String> {
    match serve(status, agent, Timestamp::UNIX_EPOCH) {
        ServeDecision::Action { action, .. } => Some(action.id.clone()),
        ServeDecision::Wait(_) => None,
    }
}

#[test]
fn actions_come_in_order_and_a_running_one_comes_again() {
    use ActionState::{Failed, Pending, Running, Success, Timeout};
    /// Columns: tasks by agent with their actions' states, requesting agent, served action.
    type Case<'a> = (&'a [(&'a str, &'a [ActionState])], &'a str, Option<&'a str>);
    let cases: &[Case<'_>] = &[
        (&[("a", &[Pending, Pending])], "a", Some("a0")),
        (&[("a", &[Running, Pending])], "a", Some("a0")),
        (&[("a", &[Success, Pending])], "a", Some("a1")),
        (&[("a", &[Success, Success])], "a", None),
        (&[("a", &[Failed, Pending])], "a", None),
        (&[("a", &[Timeout, Pending])], "a", None),
        (&[("a", &[Success]), ("b", &[Pending])], "a", None),
        (&[("a", &[Success]), ("b", &[Pending])], "b", Some("b0")),
        (&[("a", &[Pending]), ("b", &[Pending])], "b", None),
    ];
    for (tasks, agent, want) in cases {
        let got = served(&status(State::Running, tasks), agent);
        assert_eq!(got.as_deref(), *want, "{tasks:?} {agent}");
    }
}

#[test]
fn only_pending_and_running_workflows_serve() {
    for state in STATES {
        let status = status(state, &[("a", &[ActionState::Pending])]);
        assert_eq!(served(&status, "a").is_some(), state.serves(), "{state:?}");
    }
}

#[test]
fn a_stock_agent_is_back_from_a_reboot_when_it_asks_again() {
    let begun = Timestamp::UNIX_EPOCH;
    let after = |secs| begun.checked_add(SignedDuration::from_secs(secs)).unwrap();
    let left = |image: &str| ActionStatus {
        image: image.into(),
        execution_start: Some(begun),
        ..action("x", ActionState::Running)
    };
    let reboot = "quay.io/tinkerbell/actions/reboot:latest";
    /// Columns: image, true for an upstream agent, seconds since the start, true if done.
    type Case<'a> = (&'a str, bool, i64, bool);
    let cases: &[Case<'_>] = &[
        (reboot, false, 3600, false),
        (reboot, true, 19, false),
        (reboot, true, 20, true),
        ("kexec@sha256:00", true, 60, true),
        ("localhost:5000/reboot", true, 60, true),
        ("image2disk:v1", true, 3600, false),
        ("reboot/image2disk", true, 3600, false),
    ];
    for (image, is_stock, secs, want) in cases {
        assert_eq!(came_back(&left(image), *is_stock, after(*secs)), *want, "{image} {secs}");
    }
    for (runs, want) in [("kexec", true), ("a/reboot:v1", true), ("alpine", false), ("", false)] {
        let environment = [("IMAGE".into(), runs.into())].into();
        let daemon = ActionStatus { environment, ..left("ghcr.io/jacobweinstock/waitdaemon") };
        assert_eq!(came_back(&daemon, true, after(60)), want, "{runs}");
    }
    let pending = ActionStatus { state: ActionState::Pending, ..left(reboot) };
    assert!(!came_back(&pending, true, after(60)), "it was never begun");
}

#[test]
fn what_runs_is_wanted_until_its_workflow_ends() {
    use ActionState::{Running, Success};
    let mut status = status(State::Running, &[("a", &[Success, Running])]);
    assert_eq!(unwanted(&status, "a1"), None);
    assert!(unwanted(&status, "a0").is_some() && unwanted(&status, "zzz").is_some());
    status.state = State::Failed;
    assert!(unwanted(&status, "a1").unwrap().contains("its workflow is over"));
}

#[test]
fn the_action_overlays_its_task() {
    let mut task = TaskStatus { volumes: vec!["/dev:/dev".into()], ..Default::default() };
    task.environment = [("A".into(), "task".into()), ("B".into(), "task".into())].into();
    let mut action = action("x", ActionState::Pending);
    action.volumes = vec!["/tmp:/tmp".into()];
    action.environment = [("B".into(), "action".into())].into();
    assert_eq!(environment(&task, &action), ["A=task", "B=action"]);
    assert_eq!(volumes(&task, &action), ["/dev:/dev", "/tmp:/tmp"]);
}
