//! Decision when the system works, and when an update has failed. The module uses no clock and no
//! host. Times are values of [`stdx::Clock::steady`].

use std::time::Duration;

/// Time for which all checks must pass without a gap before the system counts as working (UP-4).
pub const PROVED: Duration = Duration::from_secs(120);
/// Time after which the update is undone if a check fails. Machines must not wait for an update
/// that does not work.
pub const GIVE_UP: Duration = Duration::from_secs(180);

/// Decision after a check of the running system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No decision yet. The caller checks again.
    Open,
    /// All checks passed for [`PROVED`].
    Works,
    /// A check of a system on trial still fails after [`GIVE_UP`].
    Fails,
}

/// Results of the checks since the supervisor started.
#[derive(Debug)]
pub struct Health {
    began: Duration,
    /// Time since which all checks pass; `None` if the last check failed.
    whole_since: Option<Duration>,
}

impl Health {
    /// Creates the state at `now`, the start of the supervisor.
    pub fn new(now: Duration) -> Self {
        Self { began: now, whole_since: None }
    }

    /// Evaluates a check at `now`. `whole` is true if all checks passed. `on_trial` is true if the
    /// system is new and may be undone.
    pub fn look(&mut self, whole: bool, on_trial: bool, now: Duration) -> Verdict {
        if !whole {
            self.whole_since = None;
            let late = now.saturating_sub(self.began) >= GIVE_UP;
            return if late && on_trial { Verdict::Fails } else { Verdict::Open };
        }
        let since = *self.whole_since.get_or_insert(now);
        if now.saturating_sub(since) >= PROVED { Verdict::Works } else { Verdict::Open }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Verdict::{Fails, Open, Works};
    use super::{GIVE_UP, Health, PROVED};

    const SECOND: Duration = Duration::from_secs(1);
    /// Nonzero start of the clock, because the clock is older than the supervisor.
    const BEGAN: Duration = Duration::from_secs(7000);

    #[test]
    fn proofs_count_from_their_last_gap() {
        let mut health = Health::new(BEGAN);
        let looks = [
            (Duration::ZERO, true, Open),
            (PROVED - SECOND, true, Open),
            // A proof was missing for a moment.
            (PROVED, false, Open),
            (PROVED + SECOND, true, Open),
            (PROVED * 2, true, Open),
            (PROVED * 2 + SECOND, true, Works),
            (PROVED * 3, true, Works),
        ];
        for (after, whole, verdict) in looks {
            assert_eq!(health.look(whole, true, BEGAN + after), verdict, "after {after:?}");
        }
    }

    #[test]
    fn only_a_new_system_is_given_up_and_only_while_a_proof_is_missing() {
        // On trial or not, then the checks: seconds after the start, every proof holds, verdict.
        type Row = (bool, &'static [(u32, bool, super::Verdict)]);
        let table: [Row; 5] = [
            (true, &[(0, false, Open), (179, false, Open), (180, false, Fails)]),
            (true, &[(175, true, Open), (180, true, Open), (185, false, Fails)]),
            (true, &[(179, true, Open), (298, true, Open), (299, true, Works)]),
            // The system before an update runs on, also when a proof is missing.
            (false, &[(180, false, Open), (9000, false, Open)]),
            (false, &[(180, false, Open), (9000, true, Open), (9120, true, Works)]),
        ];
        assert_eq!(GIVE_UP, SECOND * 180);
        for (on_trial, looks) in table {
            let mut health = Health::new(BEGAN);
            for (after, whole, verdict) in looks {
                let found = health.look(*whole, on_trial, BEGAN + SECOND * *after);
                assert_eq!(found, *verdict, "{on_trial} {looks:?}: after {after} s");
            }
        }
    }
}
