//! Minimum rate of a download. Pure. An origin that sends almost nothing must not occupy a turn.

use std::time::Duration;

/// Time that the box waits for an origin. At least [`MIN_BYTES`] must arrive within it.
pub(super) const WINDOW: Duration = Duration::from_secs(60);
/// Minimum bytes within [`WINDOW`], unless the file ends before: 17 KiB per second. Four such
/// downloads fit into a line of half a megabit.
pub(super) const MIN_BYTES: u64 = 1 << 20;
/// Minimum duration that an attempt counts with, so that a few bytes at once are not a high rate.
const SHORTEST: Duration = Duration::from_secs(1);

/// Time spent waiting for an origin in this window, and the bytes that arrived.
#[derive(Debug, Default)]
pub(super) struct MinRate {
    waited: Duration,
    received: u64,
}

impl MinRate {
    /// Returns the time left in this window to wait for the next bytes.
    pub(super) fn time_left(&self) -> Duration {
        WINDOW.saturating_sub(self.waited)
    }

    /// Returns the reason for giving up on an origin.
    pub(super) fn too_slow(&self) -> String {
        let (received, least) = (stdx::bytes(self.received), stdx::bytes(MIN_BYTES));
        format!("it sent {received} in {} s, less than {least}", WINDOW.as_secs())
    }

    /// Counts bytes and the time spent waiting for them. Time of the box's own disk does not count.
    pub(super) fn add(&mut self, waited: Duration, bytes: u64) {
        self.waited += waited;
        self.received += bytes;
        if self.received >= MIN_BYTES {
            *self = Self::default();
        }
    }
}

/// Returns true if an attempt brought enough bytes that it does not count as failed.
pub(super) fn is_progress(bytes: u64, elapsed: Duration) -> bool {
    let millis = elapsed.max(SHORTEST).as_millis();
    u128::from(bytes) * WINDOW.as_millis() >= u128::from(MIN_BYTES) * millis
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the seconds after which an origin with this rate is given up; 600 means never.
    fn lasts(bytes: u64) -> u64 {
        let second = Duration::from_secs(1);
        let mut min_rate = MinRate::default();
        for elapsed in 0..600 {
            if min_rate.time_left() < second {
                return elapsed;
            }
            min_rate.add(second, bytes);
        }
        600
    }

    #[test]
    fn an_origin_that_sends_next_to_nothing_is_given_up() {
        assert_eq!(lasts(0), 60);
        assert_eq!(lasts(1), 60);
        assert_eq!(lasts(17_000), 60);
        assert_eq!(lasts(18_000), 600);
    }

    #[test]
    fn each_window_counts_for_itself() {
        let mut min_rate = MinRate::default();
        min_rate.add(Duration::from_secs(5), 100 * MIN_BYTES);
        assert_eq!(min_rate.time_left(), WINDOW);
        min_rate.add(WINDOW, 1);
        assert_eq!(min_rate.time_left(), Duration::ZERO);
    }

    #[test]
    fn an_attempt_counts_by_its_rate() {
        assert!(!is_progress(0, Duration::ZERO));
        assert!(!is_progress(1, Duration::ZERO));
        assert!(is_progress(MIN_BYTES / 60 + 1, Duration::ZERO));
        assert!(is_progress(MIN_BYTES, WINDOW));
        assert!(!is_progress(MIN_BYTES, WINDOW * 2));
    }
}
