//! Interval between two readings of a BMC: short after a change, longer while the BMC is
//! unreachable, so that unreachable BMCs cost little.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::meta::ObjectKey;

use super::jitter;

/// First wait after a change of the power state; each further wait is twice as long, up to the
/// configured interval.
const AFTER_CHANGE: Duration = Duration::from_secs(5);
/// Maximum wait while a BMC is unreachable, if the configured interval is not longer.
const UNREACHABLE_MAX: Duration = Duration::from_secs(300);

/// Result of a reading, compared with the reading before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The BMC reports another state than before, or responds again.
    Changed,
    /// The BMC reports the same state as before.
    Same,
    /// The BMC has no state to report: no response, a refused login, or an invalid Secret.
    Unreachable,
}

/// Wait before the last reading; `None` before the first.
type LastWait = Option<Duration>;

/// Returns the wait until the next reading.
fn next_wait(last: LastWait, outcome: Outcome, interval: Duration) -> Duration {
    let twice = |first: Duration| last.map_or(first, |it| it * 2);
    match outcome {
        Outcome::Changed => AFTER_CHANGE.min(interval),
        Outcome::Same => twice(interval).clamp(AFTER_CHANGE.min(interval), interval),
        Outcome::Unreachable => twice(interval).clamp(interval, UNREACHABLE_MAX.max(interval)),
    }
}

/// Last waits by Machine.
#[derive(Debug, Default)]
pub struct Polls(Mutex<HashMap<ObjectKey, Duration>>);

impl Polls {
    /// Returns the wait until the next reading of a Machine, shortened by up to a tenth, so that
    /// the readings of a rack spread out.
    pub fn next(&self, machine: &ObjectKey, outcome: Outcome, interval: Duration) -> Duration {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = next_wait(waits.get(machine).copied(), outcome, interval);
        waits.insert(machine.clone(), wait);
        jitter::shortened(wait, machine)
    }

    /// Removes a Machine that was deleted.
    pub fn forget(&self, machine: &ObjectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(machine);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Outcome, next_wait};

    #[test]
    fn readings_are_frequent_after_a_change_and_rare_without_a_response() {
        let secs = Duration::from_secs;
        let rows = [
            (None, Outcome::Same, 60, 60),
            (None, Outcome::Unreachable, 60, 60),
            (Some(60), Outcome::Same, 60, 60),
            (Some(60), Outcome::Changed, 60, 5),
            (Some(5), Outcome::Same, 60, 10),
            (Some(40), Outcome::Same, 60, 60),
            (Some(5), Outcome::Unreachable, 60, 60),
            (Some(60), Outcome::Unreachable, 60, 120),
            (Some(240), Outcome::Unreachable, 60, 300),
            (Some(300), Outcome::Unreachable, 60, 300),
            (Some(300), Outcome::Same, 60, 60),
            (Some(300), Outcome::Changed, 60, 5),
            // Intervals at the two limits of `bmc.poll_secs`.
            (Some(1), Outcome::Changed, 1, 1),
            (Some(1), Outcome::Same, 1, 1),
            (Some(86_400), Outcome::Unreachable, 86_400, 86_400),
        ];
        for (last, outcome, interval, expected) in rows {
            let wait = next_wait(last.map(secs), outcome, secs(interval));
            assert_eq!(wait, secs(expected), "{last:?} {outcome:?} {interval}");
        }
    }
}
