//! Rate limit of the requests to one BMC, which has a slow processor (generic cell rate algorithm).

use std::time::Duration;

use tokio::time::Instant;

/// Mean time between two requests.
const INTERVAL: Duration = Duration::from_millis(250);
/// Requests that may follow one another without a wait.
const BURST: u32 = 20;

/// Rate limit of one BMC.
#[derive(Debug, Default)]
pub struct RateLimit {
    /// Time at which the burst is available again; `None` before the first request.
    full: Option<Instant>,
}

impl RateLimit {
    /// Counts a request, and returns the wait before the request may be sent.
    pub fn take(&mut self, now: Instant) -> Duration {
        let full = self.full.map_or(now, |it| it.max(now));
        self.full = Some(full + INTERVAL);
        full.duration_since(now).saturating_sub(INTERVAL * (BURST - 1))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{BURST, INTERVAL, RateLimit};

    #[test]
    fn requests_wait_after_a_burst() {
        let (mut rate, mut now) = (RateLimit::default(), Instant::now());
        for _ in 0..BURST {
            assert_eq!(rate.take(now), Duration::ZERO);
        }
        for _ in 0..3 {
            assert_eq!(rate.take(now), INTERVAL, "each request waits for one interval");
            now += INTERVAL;
        }
        now += INTERVAL * (BURST * 2);
        for _ in 0..BURST {
            assert_eq!(rate.take(now), Duration::ZERO, "the burst is available again");
        }
        assert_eq!(rate.take(now), INTERVAL);
    }
}
