//! Ages of log rows, by the monotonic clock. A jump of the wall clock must not trim the log,
//! because every slow watch would then have to list again.

use std::collections::VecDeque;
use std::time::Duration;

/// Number of marks within the maximum age of the log. A row may stay in the log longer by the
/// interval between two marks.
const PARTS: u32 = 64;

/// Revisions of the store at intervals. Rows of an earlier process are aged from the start of this
/// process.
#[derive(Debug, Default)]
pub(crate) struct Ages(VecDeque<(Duration, u64)>);

impl Ages {
    /// Records that the store has the revision `revision` at the time `now` of the monotonic clock.
    pub fn mark(&mut self, now: Duration, revision: u64, log_age: Duration) {
        match self.0.back_mut() {
            Some((at, last)) if *at == now => *last = revision,
            Some((at, _)) if now.saturating_sub(*at) < log_age / PARTS => {}
            _ => self.0.push_back((now, revision)),
        }
    }

    /// Returns the newest revision whose row is older than `log_age`; zero if no row is.
    pub fn aged(&mut self, now: Duration, log_age: Duration) -> u64 {
        let is_old = |at: Duration| now.saturating_sub(at) > log_age;
        // Only the newest of the old marks is needed.
        while self.0.get(1).is_some_and(|(at, _)| is_old(*at)) {
            self.0.pop_front();
        }
        self.0.front().filter(|(at, _)| is_old(*at)).map_or(0, |(_, revision)| *revision)
    }
}
