use jiff::{SignedDuration, Timestamp};

use super::{Report, ReportError, TOLERANCE, running, say, take, time_out};
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
fn the_message_of_the_running_action_alone_changes() {
    let mut status = workflow(&[("a", 2)]);
    assert_eq!(say(&status, "a", "a-0", "waiting: x"), None, "it has not begun");
    play(&mut status, &[("a-0", ActionState::Running)]);
    let updated = say(&status, "a", "a-0", "waiting: x").unwrap();
    assert_eq!(updated.tasks[0].actions[0].message, "waiting: x");
    assert_eq!(say(&updated, "a", "a-0", "waiting: x"), None, "nothing is new");
    assert_eq!(say(&status, "a", "a-1", "x").or_else(|| say(&status, "b", "a-0", "x")), None);
    play(&mut status, &[("a-0", ActionState::Success)]);
    assert_eq!(say(&status, "a", "a-0", "waiting: x"), None, "it has ended");
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
        assert!(matches!(take(&mut ended, &begin, AT), Err(ReportError::Late { .. })), "{state:?}");
    }
    let mut status = workflow(&[("a", 2)]);
    play(&mut status, &[("a-0", ActionState::Running), ("a-0", ActionState::Success)]);
    assert!(matches!(take(&mut status, &begin, AT), Err(ReportError::Late { .. })));
}

#[test]
fn strangers_are_refused() {
    let mut status = workflow(&[("a", 1)]);
    let missing = Report { action_id: "zzz".into(), ..report("a-0", ActionState::Running) };
    assert!(matches!(take(&mut status, &missing, AT), Err(ReportError::Action { .. })));
    let other = Report { agent_id: "b".into(), ..report("a-0", ActionState::Running) };
    assert!(matches!(take(&mut status, &other, AT), Err(ReportError::Agent { .. })));
}

#[test]
fn an_action_with_retries_is_begun_again_under_another_id() {
    use ActionState::{Failed, Pending, Running, Success, Timeout};
    let mut status = workflow(&[("a", 2)]);
    status.tasks[0].actions[0].retries = 2;
    play(&mut status, &[("a-0", Running), ("a-0", Failed)]);
    let action = &status.tasks[0].actions[0];
    assert_eq!(
        (status.state, action.state, action.id.as_str()),
        (State::Running, Pending, "a-0-2")
    );
    // Duplicate and late reports use up no attempt.
    for late in [Failed, Timeout, Success] {
        assert_eq!(take(&mut status, &report("a-0", late), AT), Ok(false), "{late:?}");
    }
    assert!(matches!(
        take(&mut status, &report("a-0", Running), AT),
        Err(ReportError::Late { .. })
    ));
    play(&mut status, &[("a-0-2", Running), ("a-0-2", Timeout)]);
    play(&mut status, &[("a-0-3", Running), ("a-0-3", Failed)]);
    assert_eq!(status.state, State::Failed);
    let action = &status.tasks[0].actions[0];
    assert_eq!((action.attempts, action.history.len(), action.state), (3, 2, Failed));
    assert_eq!(status.ended.unwrap().reason, "ActionFailed");
}

#[test]
fn the_box_keeps_an_actions_limit_by_its_own_clock() {
    let mut status = workflow(&[("a", 1)]);
    status.tasks[0].actions[0].timeout = 30;
    play(&mut status, &[("a-0", ActionState::Running)]);
    let action = &status.tasks[0].actions[0];
    let limit = SignedDuration::from_secs(30).checked_add(TOLERANCE).unwrap();
    assert_eq!(action.deadline, Some(AT.checked_add(limit).unwrap()));
    assert_eq!((action.execution_start, running(&status)), (Some(AT), Some((0, 0))));
    let after = time_out(&status, "not heard of", AT).unwrap();
    assert_eq!((after.state, after.tasks[0].actions[0].deadline), (State::Timeout, None));
    assert_eq!(after.ended.unwrap().message, "action step 0: not heard of");
    assert_eq!(time_out(&workflow(&[("a", 1)]), "", AT), None, "nothing runs");
}

#[test]
fn no_limit_is_no_deadline() {
    let mut status = workflow(&[("a", 1)]);
    play(&mut status, &[("a-0", ActionState::Running)]);
    assert_eq!(status.tasks[0].actions[0].deadline, None);
}

#[test]
fn no_action_is_begun_before_its_turn() {
    let mut status = workflow(&[("a", 2), ("b", 1)]);
    for early in ["a-1", "b-0"] {
        let begin = report(early, ActionState::Running);
        assert!(matches!(take(&mut status, &begin, AT), Err(ReportError::Late { .. })), "{early}");
        assert_eq!(take(&mut status, &report(early, ActionState::Failed), AT), Ok(false));
    }
    assert_eq!(status, workflow(&[("a", 2), ("b", 1)]));
}
