//! Ages of the log's rows by the steady clock. A step of the wall clock must not trim the log:
//! every watch that lags would begin anew at once.

use std::collections::VecDeque;
use std::time::Duration;

/// Marks within the age of the log; a row may stay longer by one part.
const PARTS: u32 = 64;

/// Revisions of the store, from time to time. Rows of a former process count from this
/// one's start.
#[derive(Debug, Default)]
pub(crate) struct Ages(VecDeque<(Duration, u64)>);

impl Ages {
    /// Takes down that the store is at `revision` at `now` of the steady clock.
    pub fn mark(&mut self, now: Duration, revision: u64, log_age: Duration) {
        match self.0.back_mut() {
            Some((at, last)) if *at == now => *last = revision,
            Some((at, _)) if now.saturating_sub(*at) < log_age / PARTS => {}
            _ => self.0.push_back((now, revision)),
        }
    }

    /// The newest revision whose row is older than `log_age`; zero where none is.
    pub fn aged(&mut self, now: Duration, log_age: Duration) -> u64 {
        let is_old = |at: Duration| now.saturating_sub(at) > log_age;
        // The newest old mark says all that the older ones say.
        while self.0.get(1).is_some_and(|(at, _)| is_old(*at)) {
            self.0.pop_front();
        }
        self.0.front().filter(|(at, _)| is_old(*at)).map_or(0, |(_, revision)| *revision)
    }
}
