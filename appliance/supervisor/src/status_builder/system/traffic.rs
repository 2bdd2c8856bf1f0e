//! Recent rate of bytes that were sent to booting machines.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Length of one sample.
const SAMPLE: Duration = Duration::from_secs(5);
/// Maximum number of samples: five minutes.
const SAMPLES_MAX: usize = 60;

/// Rates in bytes per second. A longer interval gives several samples of the same rate.
#[derive(Default)]
pub struct Traffic {
    last: Option<(Instant, u64)>,
    samples: VecDeque<u64>,
}

impl Traffic {
    /// Records `sent`, the total bytes that the NICs have sent.
    pub fn note(&mut self, now: Instant, sent: u64) {
        let Some((at, before)) = self.last else {
            self.last = Some((now, sent));
            return;
        };
        let passed = now.saturating_duration_since(at);
        let count = passed.as_secs() / SAMPLE.as_secs();
        if count == 0 {
            return;
        }
        // The counter of a NIC that was removed and came back starts at 0.
        let rate = sent.saturating_sub(before) / passed.as_secs().max(1);
        for _ in 0..count.min(SAMPLES_MAX as u64) {
            if self.samples.len() == SAMPLES_MAX {
                self.samples.pop_front();
            }
            self.samples.push_back(rate);
        }
        self.last = Some((now, sent));
    }

    /// Returns the samples, newest last.
    pub fn samples(&self) -> Vec<u64> {
        self.samples.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{SAMPLES_MAX, Traffic};

    #[test]
    fn samples_are_rates_of_five_seconds() {
        let start = Instant::now();
        let mut traffic = Traffic::default();
        let mut note = |second, sent| {
            traffic.note(start + Duration::from_secs(second), sent);
            traffic.samples()
        };
        assert_eq!(note(0, 1_000), [0; 0]);
        assert_eq!(note(2, 5_000), [0; 0], "too early");
        assert_eq!(note(5, 11_000), [2_000]);
        assert_eq!(note(15, 21_000), [2_000, 1_000, 1_000], "nobody looked for a while");
        assert_eq!(note(20, 50), [2_000, 1_000, 1_000, 0], "the card is another one");
        assert_eq!(note(9_000, 50).len(), SAMPLES_MAX);
    }
}
