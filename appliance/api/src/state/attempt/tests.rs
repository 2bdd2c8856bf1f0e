use jiff::{SignedDuration, Timestamp};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{collection, proptest};

use super::{
    ACTION_HISTORY_MAX, HISTORY_MAX, RENDERED, another, backoff, carry_over, end, limit, number,
};
use crate::state::report::{Report, take, time_out};
use crate::state::serve::{ServeDecision, serve};
use crate::state::workflow::{Event, next};
use crate::tinkerbell::{
    ActionState, ActionStatus, Retry, RetryFrom, State, TaskStatus, WorkflowStatus,
};

const AT: Timestamp = Timestamp::UNIX_EPOCH;

fn workflow(actions: usize, retries: i64) -> WorkflowStatus {
    let actions = (0..actions)
        .map(|at| ActionStatus {
            id: format!("id{at}"),
            name: format!("step{at}"),
            retries,
            ..ActionStatus::default()
        })
        .collect();
    let task =
        TaskStatus { id: "task".into(), agent_id: "a".into(), actions, ..TaskStatus::default() };
    WorkflowStatus {
        state: State::Pending,
        agent_id: "a".into(),
        template_rendering: RENDERED.into(),
        tasks: vec![task],
        ..WorkflowStatus::default()
    }
}

/// Renders the same Template again, as the controller does.
fn rendered(mut status: WorkflowStatus) -> WorkflowStatus {
    let fresh = |action: &ActionStatus| ActionStatus {
        id: "fresh".into(),
        name: action.name.clone(),
        retries: action.retries,
        ..ActionStatus::default()
    };
    let task = &status.tasks[0];
    let actions = task.actions.iter().map(fresh).collect();
    let tasks = vec![TaskStatus { id: "fresh".into(), actions, ..task.clone() }];
    status.tasks = carry_over(&status.tasks, tasks);
    status.template_rendering = RENDERED.into();
    end(&status, Event::RenderedForAgent, "Rendered", "", AT).unwrap()
}

fn say(status: &mut WorkflowStatus, id: &str, state: ActionState) {
    let report = Report {
        agent_id: "a".into(),
        task_id: "task".into(),
        action_id: id.into(),
        state,
        ..Report::default()
    };
    // A rejected report must change nothing, and this test covers that too.
    let _ = take(status, &report, AT);
}

fn failed_at_the_second() -> WorkflowStatus {
    use ActionState::{Failed, Running, Success};
    let mut status = workflow(3, 0);
    for (id, state) in [("id0", Running), ("id0", Success), ("id1", Running), ("id1", Failed)] {
        say(&mut status, id, state);
    }
    assert_eq!(status.state, State::Failed);
    status
}

fn states(status: &WorkflowStatus) -> Vec<ActionState> {
    status.tasks[0].actions.iter().map(|action| action.state).collect()
}

#[test]
fn from_the_failed_action_or_from_the_start() {
    use ActionState::{Pending, Success};
    let failed = failed_at_the_second();
    let again = another(&failed, RetryFrom::Failed, false, AT).unwrap();
    assert_eq!(states(&again), [Success, Pending, Pending]);
    assert_eq!((again.state, number(&again)), (State::Pending, 2));
    assert_eq!((again.history[0].attempt, again.history[0].state), (1, State::Failed));
    assert_eq!(again.history[0].message, "action step1: ");
    assert_eq!(again.tasks[0].actions[1].history[0].id, "id1");
    let ServeDecision::Action { action, .. } = serve(&again, "a", AT) else {
        panic!("nothing is served")
    };
    assert_eq!(action.id, "id1-2");

    let again = another(&failed, RetryFrom::Start, true, AT).unwrap();
    assert_eq!(states(&again), [Pending, Pending, Pending]);
    assert_eq!(again.state, State::New, "its template is read anew");
    let again = rendered(again);
    assert_eq!((again.state, again.tasks[0].actions[0].id.as_str()), (State::Pending, "id0-2"));
    assert_eq!(again.tasks[0].actions[0].history[0].id, "id0");
    assert_eq!(again.tasks[0].actions[2].id, "id2", "never begun: nothing can be late of it");
}

#[test]
fn a_start_that_was_never_rendered_is_not_served_by_the_old_text() {
    let again = another(&failed_at_the_second(), RetryFrom::Start, false, AT).unwrap();
    let cancelled = end(&again, Event::Cancelled, "Cancelled", "", AT).unwrap();
    let third = another(&cancelled, RetryFrom::Failed, false, AT).unwrap();
    assert_eq!(third.state, State::New);
}

#[test]
fn an_action_may_wait_before_it_is_begun_again() {
    let mut status = workflow(1, 3);
    status.tasks[0].actions[0].retry_wait = 30;
    let mut now = AT;
    for (id, secs) in [("id0", 30), ("id0-2", 60), ("id0-3", 120)] {
        let served = serve(&status, "a", now);
        assert!(
            matches!(served, ServeDecision::Action { action, .. } if action.id == id),
            "{served:?}"
        );
        for state in [ActionState::Running, ActionState::Failed] {
            let report = Report {
                agent_id: "a".into(),
                task_id: "task".into(),
                action_id: id.into(),
                state,
                ..Report::default()
            };
            take(&mut status, &report, now).unwrap();
        }
        let due = now + SignedDuration::from_secs(secs);
        let served = serve(&status, "a", due - SignedDuration::from_secs(1));
        assert!(matches!(served, ServeDecision::Wait(_)), "{served:?}");
        let set_back = now - SignedDuration::from_hours(24 * 365);
        assert!(
            matches!(serve(&status, "a", set_back), ServeDecision::Action { .. }),
            "no year's wait"
        );
        now = due;
    }
    assert!(matches!(serve(&status, "a", now), ServeDecision::Action { .. }));
}

#[test]
fn what_was_never_rendered_is_rendered() {
    let failed = WorkflowStatus { state: State::Failed, ..WorkflowStatus::default() };
    let again = another(&failed, RetryFrom::Failed, true, AT).unwrap();
    assert_eq!(again.state, State::New);
}

#[test]
fn nothing_but_a_failure_is_tried_again() {
    for state in crate::state::workflow::STATES {
        let status = WorkflowStatus { state, ..failed_at_the_second() };
        let again = another(&status, RetryFrom::Start, false, AT).is_some();
        assert_eq!(again, matches!(state, State::Failed | State::Timeout), "{state:?}");
    }
}

#[test]
fn the_wait_doubles_to_a_limit() {
    let retry = Retry { attempts: 50, backoff_seconds: 30, from: RetryFrom::Failed };
    for (attempt, secs) in [(1, 30), (2, 60), (3, 120), (8, 3600), (1000, 3600)] {
        assert_eq!(backoff(&retry, attempt), SignedDuration::from_secs(secs), "{attempt}");
    }
    let wild = Retry { backoff_seconds: i64::MAX, ..retry.clone() };
    assert_eq!(backoff(&wild, 2), SignedDuration::from_secs(3600));
    assert_eq!(backoff(&Retry { backoff_seconds: -1, ..retry.clone() }, 1).as_secs(), 10);
    assert_eq!((limit(Some(&retry)), limit(None)), (20, 1));
}

#[test]
fn histories_have_a_limit() {
    let mut status = failed_at_the_second();
    for _ in 0..2 * HISTORY_MAX {
        status = another(&status, RetryFrom::Failed, false, AT).unwrap();
        let id = status.tasks[0].actions[1].id.clone();
        say(&mut status, &id, ActionState::Running);
        say(&mut status, &id, ActionState::Failed);
    }
    assert_eq!(status.history.len(), HISTORY_MAX);
    assert_eq!(status.tasks[0].actions[1].history.len(), ACTION_HISTORY_MAX);
    assert_eq!(status.tasks[0].actions[1].id, "id1-41", "the id does not grow");
}

#[test]
fn a_cancelled_action_has_ended_too() {
    let mut status = workflow(2, 3);
    say(&mut status, "id0", ActionState::Running);
    let after = end(&status, Event::Cancelled, "Cancelled", "somebody said so", AT).unwrap();
    assert_eq!((after.state, states(&after)[0]), (State::Failed, ActionState::Failed));
    assert_eq!(after.current_state.unwrap().state, ActionState::Failed);
    assert_eq!(
        end(&WorkflowStatus { state: State::Post, ..status }, Event::Cancelled, "", "", AT),
        None
    );
}

/// Event of a random test sequence.
#[derive(Debug, Clone)]
enum TestEvent {
    /// Report about one of all action IDs that ever existed.
    Report(usize, ActionState),
    TimeOut,
    Cancel,
    TimeRanOut,
    Retry(RetryFrom),
    PostDone,
}

fn happens() -> impl Strategy<Value = TestEvent> {
    use ActionState::{Failed, Pending, Running, Success, Timeout};
    let state = proptest::sample::select(vec![Pending, Running, Running, Failed, Timeout, Success]);
    prop_oneof![
        12 => (any::<usize>(), state).prop_map(|(at, state)| TestEvent::Report(at, state)),
        1 => Just(TestEvent::TimeOut),
        1 => Just(TestEvent::Cancel),
        1 => Just(TestEvent::TimeRanOut),
        2 => Just(TestEvent::Retry(RetryFrom::Failed)),
        1 => Just(TestEvent::Retry(RetryFrom::Start)),
        1 => Just(TestEvent::PostDone),
    ]
}

fn apply(status: &mut WorkflowStatus, ids: &mut Vec<String>, what: &TestEvent) {
    let after = match what {
        TestEvent::Report(at, state) => {
            let id = ids[at % ids.len()].clone();
            say(status, &id, *state);
            None
        }
        TestEvent::TimeOut => time_out(status, "late", AT),
        TestEvent::Cancel => end(status, Event::Cancelled, "Cancelled", "", AT),
        TestEvent::TimeRanOut => end(status, Event::TimeRanOut, "Timeout", "", AT),
        TestEvent::Retry(from) => {
            another(status, *from, false, AT).map(|again| match again.state {
                State::New => rendered(again),
                _ => again,
            })
        }
        TestEvent::PostDone => end(status, Event::PostDone, "Succeeded", "", AT),
    };
    if let Some(after) = after {
        *status = after;
    }
    for action in &status.tasks[0].actions {
        if !ids.contains(&action.id) {
            ids.push(action.id.clone());
        }
    }
}

proptest! {
    /// Duplicate, late and lost reports, retries, cancels and clock changes may come in any order.
    /// Only a retry changes an ended workflow. No completed action is lost, and no action completes
    /// that did not start in its attempt.
    #[test]
    fn no_order_of_news_revives_or_loses(
        retries in 0_i64..3,
        news in collection::vec(happens(), 1..80),
    ) {
        let mut status = workflow(3, retries);
        let mut ids: Vec<String> = (0..3).map(|at| format!("id{at}")).collect();
        for what in &news {
            let before = status.clone();
            apply(&mut status, &mut ids, what);
            let is_retry = matches!(what, TestEvent::Retry(_));
            if before.state.ended() && !is_retry {
                assert_eq!(status, before, "{what:?} moved what had ended");
            }
            if before.state == State::Success {
                assert_eq!(status, before, "{what:?} moved what had succeeded");
            }
            let from_start = matches!(what, TestEvent::Retry(RetryFrom::Start));
            let (old, new) = (&before.tasks[0].actions, &status.tasks[0].actions);
            for (old, new) in old.iter().zip(new) {
                if old.state == ActionState::Success && !from_start {
                    assert_eq!(old, new, "{what:?} lost a completed step");
                }
                if new.state == ActionState::Success && old.state != ActionState::Success {
                    let TestEvent::Report(at, _) = what else { panic!("{what:?} ended a step") };
                    assert_eq!(ids[at % ids.len()], new.id, "another attempt's report counted");
                }
            }
            let done = new.iter().all(|action| action.state == ActionState::Success);
            let over = matches!(status.state, State::Post | State::Success);
            assert!(done || !over, "{:?} with open actions", status.state);
            assert!(status.history.len() <= HISTORY_MAX);
            let moved = before.state == status.state
                || crate::state::workflow::EVENTS
                    .into_iter()
                    .any(|event| next(before.state, event) == Some(status.state))
                // The end of an action that had not started is two transitions in one. So is an
                // attempt from the start with its rendering.
                || before.state == State::Pending
                || from_start;
            assert!(moved, "{:?} to {:?} is not in the table", before.state, status.state);
        }
    }
}
