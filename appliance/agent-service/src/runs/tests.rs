//! Tests of the index of runs: states, owners and waiting agents.

use api::tinkerbell::{AUTO_ENROLLMENT, ActionState, ActionStatus, State, TaskStatus, Workflow};
use jiff::{SignedDuration, Timestamp};

use super::{QUESTIONS_MAX, Runs};

fn at(secs: i64) -> Option<Timestamp> {
    Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(secs)).ok()
}

fn workflow(name: &str, state: State, created_secs: i64) -> Workflow {
    let mut workflow = Workflow::default();
    workflow.metadata.namespace = "default".into();
    workflow.metadata.name = name.into();
    workflow.metadata.creation_timestamp = at(created_secs);
    workflow.spec.hardware_ref = "a".into();
    workflow.status.state = state;
    workflow.status.tasks = vec![TaskStatus { agent_id: "x".into(), ..Default::default() }];
    workflow
}

#[test]
fn progress_is_of_the_runs_that_count() {
    let runs = Runs::default();
    let hardware = api::meta::ObjectKey::new("default", "a");
    let progress = || {
        let (is_under_way, end) = runs.progress(&hardware);
        (is_under_way, end.map(|end| end.time))
    };
    assert_eq!(progress(), (false, None));
    let mut done = workflow("done", State::Success, 5);
    done.status.tasks[0].actions = [7, 9, 8]
        .map(|secs| ActionStatus { execution_stop: at(secs), ..Default::default() })
        .to_vec();
    runs.put(&done);
    runs.put(&workflow("failed", State::Failed, 20));
    assert_eq!(progress(), (false, at(9)));
    let mut disabled = workflow("disabled", State::Pending, 21);
    disabled.spec.disabled = Some(true);
    runs.put(&disabled);
    assert_eq!(progress(), (false, at(9)));
    runs.put(&workflow("next", State::New, 22));
    assert_eq!(progress(), (true, at(9)));
}

#[test]
fn an_end_that_was_seen_is_told_from_one_of_before() {
    let runs = Runs::default();
    let hardware = api::meta::ObjectKey::new("default", "a");
    let seen = || runs.progress(&hardware).1.and_then(|end| end.seen);
    runs.put(&workflow("done", State::Success, 5));
    assert_eq!(seen(), None, "it was stored so");
    runs.put(&workflow("done", State::Running, 5));
    runs.put(&workflow("done", State::Success, 5));
    let first = seen();
    assert!(first.is_some());
    runs.put(&workflow("done", State::Success, 5));
    assert_eq!(seen(), first);
}

#[test]
fn a_machines_workflows_are_known_once_all_of_them_are() {
    let runs = Runs::default();
    let hardware = api::meta::ObjectKey::new("default", "a");
    runs.put(&workflow("ended", State::Success, 0));
    assert_eq!(runs.of_hardware(&hardware), None);
    runs.complete();
    runs.put(&workflow("next", State::Pending, 1));
    let names = runs.of_hardware(&hardware).unwrap().into_iter().map(|key| key.name);
    assert_eq!(names.collect::<Vec<_>>(), ["ended", "next"]);
    assert_eq!(runs.of_hardware(&api::meta::ObjectKey::new("default", "b")), Some(vec![]));
}

#[test]
fn running_first_then_the_oldest_and_never_an_ended_one() {
    let runs = Runs::default();
    runs.put(&workflow("ended", State::Success, 0));
    runs.put(&workflow("late", State::Pending, 3));
    runs.put(&workflow("early", State::Pending, 2));
    let names = |runs: &Runs| -> Vec<String> {
        runs.of_agent("x").into_iter().map(|(key, _)| key.name).collect()
    };
    assert_eq!(names(&runs), ["early", "late"]);
    runs.put(&workflow("late", State::Running, 3));
    assert_eq!(names(&runs), ["late", "early"]);
    let hardware = api::meta::ObjectKey::new("default", "a");
    assert_eq!(runs.to_boot(&hardware, &[]).unwrap().state, State::Running);
    let other = api::meta::ObjectKey::new("default", "b");
    assert!(runs.to_boot(&other, &[]).is_none());
    assert!(runs.to_boot(&other, &["x".to_owned()]).is_none(), "it has nothing left to do");
    let mut open = workflow("late", State::Running, 3);
    open.status.tasks[0].actions = vec![ActionStatus::default()];
    runs.put(&open);
    let of_agent = runs.to_boot(&other, &["y".to_owned(), "x".to_owned()]);
    assert_eq!(of_agent.unwrap().state, State::Running, "it has a task for that agent");
    runs.put(&workflow("late", State::Failed, 3));
    runs.remove(&api::meta::ObjectKey::new("default", "early"));
    assert!(runs.to_boot(&hardware, &[]).is_none());
}

#[test]
fn an_agent_without_a_token_has_enrolments_only() {
    let runs = Runs::default();
    assert!(!runs.are_enrolled("x"));
    let mut made = workflow("enrollment-x", State::Pending, 0);
    made.metadata.labels.insert(AUTO_ENROLLMENT.into(), "true".into());
    runs.put(&made);
    assert!(runs.are_enrolled("x"));
    runs.put(&workflow("mine", State::Pending, 1));
    assert!(!runs.are_enrolled("x"));
}

#[tokio::test]
async fn whoever_waits_hears_of_its_own_workflows_alone() {
    let runs = Runs::default();
    let (waiter, other) = (runs.waiter("x").unwrap(), runs.waiter("y").unwrap());
    let (news, none) = (waiter.changed(), other.changed());
    runs.put(&workflow("a", State::Pending, 1));
    news.await;
    assert!(futures_util::FutureExt::now_or_never(none).is_none());
    let news = waiter.changed();
    runs.remove(&api::meta::ObjectKey::new("default", "a"));
    news.await;
    drop((waiter, other));
    assert!(runs.waiting().is_empty());
}

#[test]
fn one_agent_does_not_wait_for_all() {
    let runs = Runs::default();
    let mut waiters: Vec<_> = std::iter::from_fn(|| runs.waiter("x")).take(100).collect();
    assert_eq!(waiters.len(), QUESTIONS_MAX);
    assert!(runs.waiter("y").is_some());
    waiters.pop();
    assert!(runs.waiter("x").is_some(), "one was answered");
}

#[test]
fn what_is_at_work_is_counted_as_it_comes_and_goes() {
    let runs = Runs::default();
    let with = |name: &str, state: ActionState| {
        let mut workflow = workflow(name, State::Running, 1);
        workflow.status.tasks[0].actions = vec![ActionStatus { state, ..Default::default() }];
        workflow
    };
    runs.put(&with("a", ActionState::Running));
    runs.put(&with("a", ActionState::Running));
    runs.put(&with("b", ActionState::Running));
    runs.put(&with("c", ActionState::Pending));
    assert_eq!(runs.at_work(), 2);
    runs.put(&with("a", ActionState::Success));
    runs.remove(&with("b", ActionState::Running).key());
    assert_eq!(runs.at_work(), 0);
}
