//! Minimum rate of a download. Pure. An origin that sends almost no bytes must not occupy a
//! download slot.

use std::time::Duration;

/// Time of waiting for an origin within which at least [`MIN_BYTES`] must arrive.
pub(super) const WINDOW: Duration = Duration::from_secs(60);
/// Minimum bytes within [`WINDOW`], unless the file ends before: 17 KiB per second. Four such
/// downloads fit into an Internet connection of 0.5 Mbit/s.
pub(super) const MIN_BYTES: u64 = 1 << 20;
/// Minimum duration for the rate of an attempt: a few bytes in less time are not a high rate.
const SHORTEST: Duration = Duration::from_secs(1);

/// State of the current window: the time spent waiting for the origin, and the bytes that arrived.
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

    /// Returns the reason for ending the download from an origin that is too slow.
    pub(super) fn too_slow(&self) -> String {
        let (received, least) = (stdx::bytes(self.received), stdx::bytes(MIN_BYTES));
        format!("it sent {received} in {} s, less than {least}", WINDOW.as_secs())
    }

    /// Adds bytes and the time spent waiting for them. Time of the box's own disk does not count.
    pub(super) fn add(&mut self, waited: Duration, bytes: u64) {
        self.waited += waited;
        self.received += bytes;
        if self.received >= MIN_BYTES {
            *self = Self::default();
        }
    }
}

/// Returns true if an attempt transferred enough bytes that it does not count as failed.
pub(super) fn is_progress(bytes: u64, elapsed: Duration) -> bool {
    let millis = elapsed.max(SHORTEST).as_millis();
    u128::from(bytes) * WINDOW.as_millis() >= u128::from(MIN_BYTES) * millis
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the seconds after which a download at this rate is ended; 600 means never.
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
