//! Cancellations, and faults of the box, machines and networks, in single workflows. The emulated
//! racks of `tests/scenarios` run similar scenarios.

use std::time::Duration;

use api::tinkerbell::{ActionState, RetryFrom, State, Workflow};
use sim::fleet::{Incident, Kind, Stage, Summary, action, direct};

use crate::seeds::Seeds;

/// Number of seeds of each scenario.
const RUNS: u64 = 8;
/// Maximum interval of a working agent's messages, plus the time of an answer.
const HEARD: Duration = Duration::from_secs(7);
/// Longer than a box is away, and than any wait of its agents.
const BACK: Duration = Duration::from_secs(20);
/// Longer than a machine takes to start.
const STARTED: Duration = Duration::from_secs(60);
/// Error messages of an agent for bad images, by workflow.
const BAD_IMAGES: [(&str, &str); 4] = [
    ("missing", "http://box/nothing.raw is refused: 404 Not Found"),
    ("corrupt", "cannot decode the zstd image http://box/corrupt.raw.zst"),
    ("too-large", "the image http://box/large.raw is larger than /dev/vda, which has 4.0 GiB"),
    ("wrong-sum", "sha256 of the image is 12, expected 34"),
];

fn scenario(kind: Kind, script: impl AsyncFn(&Stage)) {
    for seed in Seeds::new(RUNS).all {
        let directed = direct(kind, 1, seed, async |stage| script(stage).await);
        let Summary { machines, .. } = directed.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(machines, 1);
    }
}

/// The actions that began, in order, without their machines.
fn names(stage: &Stage) -> Vec<String> {
    stage.begun().into_iter().map(|(_, action)| action).collect()
}

#[test]
fn a_cancelled_image_is_stopped_and_begun_again() {
    scenario(Kind::Install, async |stage| {
        stage.until_runs(0, "image").await;
        stage.pass(HEARD).await;
        stage.cancel(0);
        let view = stage.until(0, "over", |it| it.status.state.ended()).await;
        let ended = view.status.ended.clone().unwrap();
        assert_eq!((view.status.state, ended.reason.as_str()), (State::Failed, "Cancelled"));
        assert!(action(&view, "image").message.contains("canceled"));
        assert_eq!(action(&view, "image").state, ActionState::Failed);
        for later in ["write", "leave"] {
            assert_eq!(action(&view, later).state, ActionState::Pending, "nothing after it ran");
        }
        assert!(stage.events(0).iter().any(|reason| reason == "Cancelled"));
        stage.pass(HEARD).await;
        assert!(!stage.is_writing(0), "its agent stopped");
        // The retry policy does not apply to a workflow that its owner canceled.
        stage.pass(Duration::from_secs(3600)).await;
        let later = stage.until(0, "over", |it| it.status.state.ended()).await;
        assert_eq!(later.status.state, State::Failed);
        assert_eq!(names(stage), ["wipe", "image"]);
        assert!(!stage.is_bootable(0), "half an image starts nothing");

        stage.retry(0, RetryFrom::Failed);
        let view = stage.until(0, "done", |it| it.status.state == State::Success).await;
        assert_eq!(view.status.attempts, 2);
        assert_eq!(names(stage), ["wipe", "image", "image", "write", "leave"]);
        stage.pass(STARTED).await;
        assert_eq!(stage.story(0), "boots its disk");
        assert_eq!(stage.switched_on(0), 1, "the same agent did both");
    });
}

#[test]
fn a_cancelled_workflow_starts_over() {
    scenario(Kind::Restarts, async |stage| {
        // The end of the first task, because the second task may end between two checks.
        let seeded = |it: &Workflow| {
            let mut actions = it.status.tasks.iter().flat_map(|task| &task.actions);
            actions.any(|it| it.name == "seed" && it.state == ActionState::Success)
        };
        stage.until(0, "in its second task", seeded).await;
        stage.cancel(0);
        stage.until(0, "over", |it| it.status.state.ended()).await;
        // The cancellation may come while the machine starts the installed system. Then the agent
        // is gone, and the retry must switch the machine on again.
        stage.pass(HEARD).await;
        let has_left = stage.story(0) == "runs what was installed";
        let before = names(stage).len();
        stage.retry(0, RetryFrom::Start);
        let view = stage.until(0, "done", |it| it.status.state == State::Success).await;
        assert_eq!(view.status.attempts, 2);
        assert_eq!(names(stage)[before..], ["image", "again", "seed", "user", "leave"]);
        stage.pass(STARTED).await;
        assert_eq!(stage.story(0), "runs what was installed");
        assert_eq!(stage.switched_on(0), 1 + usize::from(has_left));
    });
}

#[test]
fn two_machines_do_the_tasks_of_one_workflow() {
    scenario(Kind::Pair, async |stage| {
        stage.until(0, "done", |it| it.status.state == State::Success).await;
        let begun = stage.begun();
        let begun: Vec<_> = begun.iter().map(|(of, name)| (of.as_str(), name.as_str())).collect();
        let order = [
            ("nuc0", "write-one"),
            ("nuc1", "write-two"),
            ("nuc1", "leave-two"),
            ("nuc0", "leave-one"),
        ];
        assert_eq!(begun, order);
        stage.pass(STARTED).await;
        assert_eq!([0, 1].map(|machine| stage.story(machine)), ["boots its disk"; 2]);
        assert_eq!([0, 1].map(|machine| stage.switched_on(machine)), [1, 0]);
        for (own, other, actions) in
            [(0, 1, ["write-one", "leave-one"]), (1, 0, ["write-two", "leave-two"])]
        {
            for name in actions {
                assert!(stage.has_event(own, name) && !stage.has_event(other, name), "{name}");
            }
        }
    });
}

#[test]
fn the_box_is_killed_at_five_points() {
    scenario(Kind::Install, async |stage| {
        let kill = async || {
            stage.inject(Incident::Box, 0);
            stage.pass(BACK).await;
        };
        stage.until(0, "acknowledged", |_| true).await;
        kill().await;
        stage.until_that("the machine is on", |stage| stage.switched_on(0) == 1).await;
        kill().await;
        stage.until_that("its agent starts", |stage| stage.story(0) == "runs its agent").await;
        kill().await;
        stage
            .until(0, "at its image or further", |it| {
                it.status
                    .tasks
                    .first()
                    .is_some_and(|_| action(it, "image").state != ActionState::Pending)
            })
            .await;
        kill().await;
        let left = |it: &_| action(it, "leave").state == ActionState::Success;
        stage.until(0, "at its end", left).await;
        kill().await;
        stage.until(0, "done", |it| it.status.state == State::Success).await;
        stage.pass(STARTED).await;
        assert_eq!(stage.story(0), "boots its disk");
        assert_eq!(stage.switched_on(0), 1, "no power action was repeated");
        assert_eq!(names(stage), ["wipe", "image", "write", "leave"]);
    });
}

#[test]
fn a_box_that_is_away_for_long_repeats_nothing() {
    scenario(Kind::Install, async |stage| {
        stage.until_runs(0, "image").await;
        stage.inject(Incident::BoxForLong, 0);
        stage.until(0, "done", |it| it.status.state == State::Success).await;
        // The box counts an agent as silent only after the box itself has run for the whole
        // timeout.
        assert_eq!(names(stage), ["wipe", "image", "write", "leave"]);
        assert_eq!(stage.switched_on(0), 1);
    });
}

#[test]
fn a_dropped_connection_repeats_nothing() {
    scenario(Kind::Install, async |stage| {
        // Breaks the connections again and again: some actions end within a moment.
        let dropping = async {
            loop {
                stage.inject(Incident::Connections, 0);
                stage.pass(Duration::from_millis(700)).await;
            }
        };
        let done = stage.until(0, "done", |it| it.status.state == State::Success);
        let view = tokio::select! {
            view = done => view,
            () = dropping => unreachable!("it drops connections for ever"),
        };
        assert!(view.status.attempts <= 1);
        assert_eq!(names(stage), ["wipe", "image", "write", "leave"]);
        assert_eq!(stage.switched_on(0), 1);
    });
}

#[test]
fn the_machine_and_the_box_lose_power_in_the_middle_of_an_image() {
    let images = |stage: &Stage| names(stage).iter().filter(|name| *name == "image").count();
    scenario(Kind::Install, async |stage| {
        stage.until_runs(0, "image").await;
        stage.pass(HEARD).await;
        stage.inject(Incident::Power, 0);
        // No user acts: the box notices the silence and boots the machine again.
        stage.until_that("the image is begun again", |stage| images(stage) == 2).await;
        stage.pass(HEARD).await;
        assert!(stage.is_writing(0) && !stage.is_bootable(0));
        stage.inject(Incident::Box, 0);
        stage.until(0, "done", |it| it.status.state == State::Success).await;
        stage.pass(STARTED).await;
        assert_eq!(stage.story(0), "boots its disk");
        assert_eq!((images(stage), stage.switched_on(0)), (2, 2), "once to begin, once after");
    });
}

#[test]
fn each_bad_image_fails_with_its_cause_and_the_same_agent_goes_on() {
    scenario(Kind::Doomed, async |stage| {
        stage.until(0, "over", |it| it.status.attempts == 2 && it.status.state.ended()).await;
        for (name, says) in BAD_IMAGES {
            stage.apply(0, name, "doomed", says);
            let view = stage.until_of(name, "over", |it| it.status.state.ended()).await;
            assert_eq!(view.status.state, State::Failed, "{name}");
            let message = &action(&view, name).message;
            assert!(message.contains(says), "{name}: {message}");
            assert!(view.status.ended.is_some_and(|ended| ended.message.contains(says)), "{name}");
        }
        stage.apply(0, "good", "image2disk", "");
        let view = stage.until_of("good", "over", |it| it.status.state.ended()).await;
        assert_eq!(view.status.state, State::Success);
        assert!(stage.is_bootable(0));
        assert_eq!(stage.switched_on(0), 1, "the same agent met them all");
    });
}
