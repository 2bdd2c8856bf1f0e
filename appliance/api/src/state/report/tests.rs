use jiff::{SignedDuration, Timestamp};

use super::{Refused, Report, take};
use crate::state::workflow::STATES;
use crate::tinkerbell::{ActionState, ActionStatus, State, TaskStatus, WorkflowStatus};

const AT: Timestamp = Timestamp::UNIX_EPOCH;

fn workflow(agents: &[(&str, usize)]) -> WorkflowStatus {
    let tasks = agents
        .iter()
        .map(|(agent, actions)| TaskStatus {
            id: format!("task-{agent}"),
            name: format!("on {agent}"),
            agent_id: (*agent).into(),
            actions: (0..*actions)
                .map(|at| ActionStatus {
                    id: format!("{agent}-{at}"),
                    name: format!("step {at}"),
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        })
        .collect();
    let agent_id = agents[0].0.to_owned();
    WorkflowStatus {
        state: State::Pending,
        agent_id,
        tasks,
        global_timeout: 60,
        ..Default::default()
    }
}

fn report(action: &str, state: ActionState) -> Report {
    let agent = action.split('-').next().unwrap();
    Report {
        agent_id: agent.into(),
        task_id: format!("task-{agent}"),
        action_id: action.into(),
        state,
        ..Default::default()
    }
}

fn play(status: &mut WorkflowStatus, reports: &[(&str, ActionState)]) {
    for (action, state) in reports {
        take(status, &report(action, *state), AT).unwrap();
    }
}

#[test]
fn a_whole_run_over_two_agents() {
    use ActionState::{Running, Success};
    let mut status = workflow(&[("a", 2), ("b", 1)]);
    play(&mut status, &[("a-0", Running)]);
    assert_eq!(status.state, State::Running);
    play(&mut status, &[("a-0", Success), ("a-1", Running), ("a-1", Success)]);
    assert_eq!((status.state, status.agent_id.as_str()), (State::Running, "b"));
    play(&mut status, &[("b-0", Running), ("b-0", Success)]);
    assert_eq!(status.state, State::Post);
    assert_eq!(status.current_state.unwrap().action_name, "step 0");
}

#[test]
fn failure_and_timeout_end_it() {
    for (reported, want) in
        [(ActionState::Failed, State::Failed), (ActionState::Timeout, State::Timeout)]
    {
        let mut status = workflow(&[("a", 2)]);
        play(&mut status, &[("a-0", ActionState::Running), ("a-0", reported)]);
        assert_eq!(status.state, want);
    }
}

#[test]
fn the_global_clock_starts_with_the_first_action_and_is_not_moved() {
    let mut status = workflow(&[("a", 2)]);
    play(&mut status, &[("a-0", ActionState::Running)]);
    let stop = AT.checked_add(SignedDuration::from_secs(60)).unwrap();
    assert_eq!(status.global_execution_stop, Some(stop));
    let later = AT.checked_add(SignedDuration::from_secs(30)).unwrap();
    take(&mut status, &report("a-0", ActionState::Running), later).unwrap();
    assert_eq!(status.global_execution_stop, Some(stop));
}

#[test]
fn repeated_and_late_reports_are_acknowledged_and_change_nothing() {
    use ActionState::{Failed, Running, Success};
    let mut status = workflow(&[("a", 2)]);
    play(&mut status, &[("a-0", Running), ("a-0", Success)]);
    for late in [Success, Failed] {
        let before = status.clone();
        assert_eq!(take(&mut status, &report("a-0", late), AT), Ok(false));
        assert_eq!(status, before);
    }
    for state in STATES.into_iter().filter(|state| !state.serves()) {
        let mut ended = WorkflowStatus { state, ..workflow(&[("a", 1)]) };
        assert_eq!(take(&mut ended, &report("a-0", Success), AT), Ok(false));
        assert_eq!(ended.state, state);
    }
}

#[test]
fn it_is_never_too_late_to_hear_that_an_action_must_not_begin() {
    let begin = report("a-0", ActionState::Running);
    for state in STATES.into_iter().filter(|state| !state.serves()) {
        let mut ended = WorkflowStatus { state, ..workflow(&[("a", 1)]) };
        assert!(matches!(take(&mut ended, &begin, AT), Err(Refused::Late { .. })), "{state:?}");
    }
    let mut status = workflow(&[("a", 2)]);
    play(&mut status, &[("a-0", ActionState::Running), ("a-0", ActionState::Success)]);
    assert!(matches!(take(&mut status, &begin, AT), Err(Refused::Late { .. })));
}

#[test]
fn strangers_are_refused() {
    let mut status = workflow(&[("a", 1)]);
    let missing = Report { action_id: "zzz".into(), ..report("a-0", ActionState::Running) };
    assert!(matches!(take(&mut status, &missing, AT), Err(Refused::Action { .. })));
    let other = Report { agent_id: "b".into(), ..report("a-0", ActionState::Running) };
    assert!(matches!(take(&mut status, &other, AT), Err(Refused::Agent { .. })));
}
