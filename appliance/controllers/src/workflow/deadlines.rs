//! Remaining times of workflows, measured with a monotonic clock.
//!
//! A deadline is stored as a time of day, which survives a restart of the box. After the first
//! read, the monotonic clock counts the remaining time. Setting the clock, forward or back by
//! years, therefore does not change any timeout.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::meta::ObjectKey;
use api::state::report::{allowance, running};
use api::tinkerbell::WorkflowStatus;
use jiff::{SignedDuration, Timestamp};
use stdx::Clock;

/// Minimum remaining time of a deadline at its first read, but at most the limit itself. After a
/// restart of the box, agents need this time to deliver waiting reports.
const GRACE: Duration = Duration::from_secs(60);

/// Remaining times of a workflow. Zero means that the time is up, `None` that there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeLeft {
    /// Remaining time of the running action.
    pub action: Option<Duration>,
    /// Remaining time of the whole workflow.
    pub whole: Option<Duration>,
}

/// Deadlines of all workflows with a limit, kept in memory.
#[derive(Debug, Default)]
pub struct Deadlines(Mutex<HashMap<ObjectKey, [Option<RunningDeadline>; 2]>>);

/// Deadline that was read since the start of the box.
#[derive(Debug, Clone, Copy)]
struct RunningDeadline {
    deadline: Timestamp,
    /// Monotonic time at which the deadline passes.
    due: Duration,
}

impl RunningDeadline {
    fn new(deadline: Timestamp, limit: Duration, clock: &dyn Clock) -> Self {
        let left = Duration::try_from(deadline.duration_since(clock.now())).unwrap_or_default();
        let left = left.clamp(GRACE.min(limit), limit);
        Self { deadline, due: clock.steady().saturating_add(left) }
    }
}

impl Deadlines {
    /// Returns the remaining times of a workflow.
    pub fn left(&self, key: &ObjectKey, status: &WorkflowStatus, clock: &dyn Clock) -> TimeLeft {
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
            return TimeLeft::default();
        }
        let seen = all.entry(key.clone()).or_default();
        let mut left = [None; 2];
        for ((seen, limit), left) in seen.iter_mut().zip(limits).zip(&mut left) {
            *seen = limit.map(|(deadline, limit)| match *seen {
                Some(seen) if seen.deadline == deadline => seen,
                _ => RunningDeadline::new(deadline, limit, clock),
            });
            *left = seen.map(|seen| seen.due.saturating_sub(clock.steady()));
        }
        TimeLeft { action: left[0], whole: left[1] }
    }

    /// Removes a workflow that was deleted.
    pub fn forget(&self, key: &ObjectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Returns the deadline `stop` of a workflow, extended by the time `pause` of its pause.
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
