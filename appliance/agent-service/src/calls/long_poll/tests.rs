//! Tests of long polling: duration and end of the wait.

use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_rpc::{Refusal, Workflows as _};
use api::tinkerbell::State;
use tokio::time::Instant;

use crate::fixture::{AGENT, Fixture, fixture};

const PATIENCE: Duration = Duration::from_secs(20);

impl Fixture {
    /// Requests work for the agent, and returns the response and its delay.
    async fn ask(&self, patience: Duration) -> (Result<String, Refusal>, Duration) {
        let began = Instant::now();
        let answer = self.service.next(AGENT, None, patience).await;
        (answer.map(|given| given.name), began.elapsed())
    }
}

#[tokio::test(start_paused = true)]
async fn one_who_waits_is_told_at_once() {
    let fixture = fixture();
    let appear = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        fixture.put(State::Pending);
    };
    let ((answer, took), ()) = tokio::join!(fixture.ask(PATIENCE), appear);
    assert_eq!(answer.as_deref(), Ok("write"));
    assert_eq!(took.as_secs(), 7);
    assert_eq!(fixture.ask(PATIENCE).await, (Ok("write".to_owned()), Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever() {
    let fixture = fixture();
    for (patience, waits) in [(0, 0), (20, 20), (255, 30)] {
        let (answer, took) = fixture.ask(Duration::from_secs(patience)).await;
        assert!(matches!(answer, Err(Refusal::NotFound(_))), "{answer:?}");
        assert_eq!(took.as_secs(), waits, "a patience of {patience} s");
    }
    fixture.put(State::Preparing);
    let (answer, took) = fixture.ask(PATIENCE).await;
    assert!(matches!(answer, Err(Refusal::Precondition(_))), "{answer:?}");
    assert_eq!(took, PATIENCE);
}

#[tokio::test(start_paused = true)]
async fn agents_that_wait_read_their_workflow_ever_less_often() {
    let fixture = fixture();
    fixture.put(State::Preparing);
    let before = fixture.objects.1.load(Ordering::Relaxed);
    let (answer, _) = fixture.ask(Duration::from_secs(30)).await;
    assert!(matches!(answer, Err(Refusal::Precondition(_))), "{answer:?}");
    let reads = fixture.objects.1.load(Ordering::Relaxed) - before;
    assert!((4..=8).contains(&reads), "{reads} reads in 30 s");
}

#[tokio::test(start_paused = true)]
async fn a_box_that_stops_keeps_nobody() {
    let fixture = fixture();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        fixture.closing.cancel();
    };
    let ((answer, took), ()) = tokio::join!(fixture.ask(PATIENCE), stop);
    assert!(matches!(answer, Err(Refusal::Unavailable(_))), "{answer:?}");
    assert_eq!(took.as_secs(), 3);
}
