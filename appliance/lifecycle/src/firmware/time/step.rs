//! Limits for clock changes by NTP servers. This module uses no clock and no host.

use std::time::{Duration, SystemTime};

use ntp::Offset;

/// Maximum step by a single server in one round, after the clock was set. A clock does not drift so
/// far between two rounds, but a server may be wrong.
const STEP_MAX: Duration = Duration::from_mins(10);
/// Maximum difference of two offsets that count as equal.
const AGREES: Duration = Duration::from_secs(2);
/// Maximum age of the system. A later time is wrong, because GPS clocks roll over every 20 years.
const LIFE_MAX: Duration = Duration::from_hours(20 * 366 * 24);

/// Decision about the offset from a round of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The clock follows the offset.
    Follow,
    /// The clock stays until another server or the next round confirms the step.
    Confirm,
    /// The clock stays: the time is before the build of the system, or over 20 years after it.
    Impossible,
}

/// State of the decisions since the start.
#[derive(Debug, Default)]
pub struct Steps {
    /// Build time of the system.
    built: Option<SystemTime>,
    /// True if a server has set the clock since the start.
    is_told: bool,
    /// Large step from the last round that waits for confirmation.
    wanted: Option<Offset>,
}

impl Steps {
    /// Creates the state of a clock that no server has set yet.
    pub fn new(built: Option<SystemTime>) -> Self {
        Self { built, ..Self::default() }
    }

    /// Decides about `offset`, on which `agreeing` servers agree. `now` is the time of the clock.
    pub fn judge(&mut self, offset: Offset, agreeing: usize, now: SystemTime) -> Verdict {
        let time = offset.after(now);
        if self.built.is_some_and(|built| time < built || time > built + LIFE_MAX) {
            return Verdict::Impossible;
        }
        let is_same = |before: Offset| Offset(before.0.saturating_sub(offset.0)).abs() <= AGREES;
        let is_sure = !self.is_told
            || offset.abs() <= STEP_MAX
            || agreeing > 1
            || self.wanted.is_some_and(is_same);
        self.wanted = (!is_sure).then_some(offset);
        self.is_told |= is_sure;
        if is_sure { Verdict::Follow } else { Verdict::Confirm }
    }

    /// Returns the number of offsets in `all` that equal the chosen offset.
    pub fn agreeing(chosen: Offset, all: impl Iterator<Item = Offset>) -> usize {
        all.filter(|other| Offset(other.0.saturating_sub(chosen.0)).abs() <= AGREES).count()
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Offset, Steps, SystemTime, Verdict};

    const YEAR: i64 = 366 * 24 * 3600;

    fn seconds(seconds: i64) -> Offset {
        Offset(seconds * 1_000_000_000)
    }

    fn built() -> SystemTime {
        // Time in November 2026.
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000)
    }

    #[test]
    fn no_server_sets_a_date_before_the_system_or_long_after() {
        let now = built() + Duration::from_hours(24);
        for (offset, verdict) in [
            (seconds(-20 * YEAR), Verdict::Impossible),
            (seconds(-2 * 24 * 3600), Verdict::Impossible),
            (seconds(21 * YEAR), Verdict::Impossible),
            (seconds(-12 * 3600), Verdict::Follow),
            (seconds(10 * YEAR), Verdict::Follow),
        ] {
            // The number of agreeing servers does not matter.
            assert_eq!(Steps::new(Some(built())).judge(offset, 3, now), verdict, "{offset}");
        }
    }

    #[test]
    fn a_large_step_wants_a_second_opinion_once_the_clock_was_set() {
        let now = built() + Duration::from_hours(24);
        let mut steps = Steps::new(Some(built()));
        assert_eq!(steps.judge(seconds(8 * 3600), 1, now), Verdict::Follow, "the first");
        assert_eq!(steps.judge(seconds(599), 1, now), Verdict::Follow, "a small one");
        assert_eq!(steps.judge(seconds(YEAR), 1, now), Verdict::Confirm);
        assert_eq!(steps.judge(seconds(-3600), 1, now), Verdict::Confirm, "another one");
        assert_eq!(steps.judge(seconds(YEAR), 1, now), Verdict::Confirm);
        assert_eq!(steps.judge(seconds(YEAR + 1), 1, now), Verdict::Follow, "twice the same");
        assert_eq!(steps.judge(seconds(YEAR), 2, now), Verdict::Follow, "two servers");
    }

    #[test]
    fn opinions_agree_within_seconds() {
        let all = [0, 1, 2, 3, 100].map(seconds);
        assert_eq!(Steps::agreeing(seconds(1), all.into_iter()), 4);
    }
}
