//! Limit of the log messages about a remote API that is away: every object fails at every retry.

use std::time::Duration;

use tokio::time::Instant;

/// Minimum time between two messages of a controller about an outage.
const INTERVAL: Duration = Duration::from_secs(600);

/// Errors of an outage, of which one in each [`INTERVAL`] is logged.
#[derive(Default)]
pub struct OutageLog {
    reported: Option<Instant>,
    unreported: u64,
}

impl OutageLog {
    /// Counts an error. Returns the number of errors since the last message if the next message is
    /// due.
    pub fn count(&mut self, now: Instant) -> Option<u64> {
        if self.reported.is_some_and(|at| now.duration_since(at) < INTERVAL) {
            self.unreported += 1;
            return None;
        }
        self.reported = Some(now);
        Some(std::mem::take(&mut self.unreported))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{INTERVAL, OutageLog};

    #[test]
    fn one_error_of_an_interval_is_reported() {
        let (mut log, start) = (OutageLog::default(), Instant::now());
        assert_eq!(log.count(start), Some(0));
        for second in 1..INTERVAL.as_secs() {
            assert_eq!(log.count(start + Duration::from_secs(second)), None);
        }
        assert_eq!(log.count(start + INTERVAL), Some(INTERVAL.as_secs() - 1));
        assert_eq!(log.count(start + INTERVAL), None);
        assert_eq!(log.count(start + INTERVAL * 3), Some(1));
    }
}
