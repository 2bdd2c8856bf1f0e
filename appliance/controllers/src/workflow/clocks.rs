//! How long something may still take, by a clock that nobody can set.
//!
//! A deadline is stored as a time of day, which survives a restart of the box; from the moment it
//! is first seen in this life of the box it is counted down by the steady clock. So a box whose
//! clock is set, forward or back by years, ends nothing early and nothing late.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::meta::ObjectKey;
use api::state::report::{allowance, running};
use api::tinkerbell::WorkflowStatus;
use jiff::{SignedDuration, Timestamp};
use stdx::Clock;

/// What a deadline found past when it is first seen is given: after a restart of the box, the time
/// in which agents deliver what they could not report. Never more than the limit itself.
const GRACE: Duration = Duration::from_secs(60);

/// How long there is left; zero when the time is up, `None` where there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Left {
    /// For the action that runs.
    pub action: Option<Duration>,
    /// For the whole.
    pub whole: Option<Duration>,
}

/// The deadlines of every workflow that has one. Kept in memory.
#[derive(Debug, Default)]
pub struct Deadlines(Mutex<HashMap<ObjectKey, [Option<Seen>; 2]>>);

/// A deadline that was seen.
#[derive(Debug, Clone, Copy)]
struct Seen {
    deadline: Timestamp,
    /// The moment of the steady clock that stands for it.
    due: Duration,
}

impl Seen {
    fn new(deadline: Timestamp, limit: Duration, clock: &dyn Clock) -> Self {
        let left = Duration::try_from(deadline.duration_since(clock.now())).unwrap_or_default();
        let left = left.clamp(GRACE.min(limit), limit);
        Self { deadline, due: clock.steady().saturating_add(left) }
    }
}

impl Deadlines {
    /// What is left to a workflow.
    pub fn left(&self, key: &ObjectKey, status: &WorkflowStatus, clock: &dyn Clock) -> Left {
        let secs = |secs: i64| Duration::from_secs(u64::try_from(secs).unwrap_or(0));
        let action = running(status).and_then(|at| {
            let action = &status.tasks[at.0].actions[at.1];
            let limit = Duration::try_from(allowance(action)?).unwrap_or_default();
            Some((action.deadline?, limit))
        });
        let whole = status.global_execution_stop.map(|stop| (stop, secs(status.global_timeout)));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = [action, whole].map(|it| it.filter(|_| status.state.serves()));
        if limits == [None, None] {
            all.remove(key);
            return Left::default();
        }
        let seen = all.entry(key.clone()).or_default();
        let mut left = [None; 2];
        for ((seen, limit), left) in seen.iter_mut().zip(limits).zip(&mut left) {
            *seen = limit.map(|(deadline, limit)| match *seen {
                Some(seen) if seen.deadline == deadline => seen,
                _ => Seen::new(deadline, limit, clock),
            });
            *left = seen.map(|seen| seen.due.saturating_sub(clock.steady()));
        }
        Left { action: left[0], whole: left[1] }
    }

    /// Forget a workflow that is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// The global deadline of a workflow that stood still for `pause`.
pub fn later(stop: Option<Timestamp>, pause: SignedDuration) -> Option<Timestamp> {
    let pause = pause.max(SignedDuration::ZERO);
    stop.map(|stop| stop.saturating_add(pause).unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::meta::ObjectKey;
    use api::tinkerbell::{State, WorkflowStatus};
    use jiff::{SignedDuration, Timestamp};
    use stdx::{Clock as _, TestClock};

    use super::Deadlines;

    #[test]
    fn setting_the_clock_ends_nothing() {
        let clock = TestClock::at(Timestamp::UNIX_EPOCH);
        let (deadlines, key) = (Deadlines::default(), ObjectKey::new("default", "wf"));
        let status = WorkflowStatus {
            state: State::Running,
            global_timeout: 600,
            global_execution_stop: Some(Timestamp::from_second(600).unwrap()),
            ..WorkflowStatus::default()
        };
        let left =
            |clock: &TestClock| deadlines.left(&key, &status, clock).whole.unwrap().as_secs();
        assert_eq!(left(&clock), 600);
        clock.set(SignedDuration::from_hours(24 * 365 * 50));
        assert_eq!(left(&clock), 600, "the box learned the time");
        clock.set(SignedDuration::from_hours(-24 * 365 * 40));
        clock.advance(SignedDuration::from_secs(599));
        assert_eq!(left(&clock), 1);
        clock.advance(SignedDuration::from_secs(1));
        assert_eq!(left(&clock), 0);
        let next_life = Deadlines::default();
        let fresh = next_life.left(&key, &status, &clock).whole;
        assert_eq!(fresh, Some(Duration::from_secs(60)), "agents may deliver what they have");
        clock.set(SignedDuration::from_hours(-24 * 365 * 20));
        assert!(clock.now() < Timestamp::UNIX_EPOCH);
        let fresh = Deadlines::default().left(&key, &status, &clock).whole;
        assert_eq!(fresh, Some(Duration::from_secs(600)), "never more than the limit");
        let ended = WorkflowStatus { state: State::Failed, ..status.clone() };
        assert_eq!(deadlines.left(&key, &ended, &clock).whole, None);
    }
}
