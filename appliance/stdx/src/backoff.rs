//! Exponential backoff with a maximum. The module computes waits and does not sleep.

use std::time::Duration;

/// Waits that double from `first` up to `max`. [`Backoff::reset`] is for use after a success.
///
/// ```
/// use std::time::Duration;
/// let mut backoff = stdx::Backoff::new(Duration::from_secs(1), Duration::from_secs(3));
/// let waits: Vec<_> = (0..4).map(|_| backoff.next_wait().as_secs()).collect();
/// assert_eq!(waits, [1, 2, 3, 3]);
/// ```
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    /// Creates a backoff whose first wait is `first` and whose longest wait is `max`.
    pub fn new(first: Duration, max: Duration) -> Self {
        Self { first, max, next: first.min(max) }
    }

    /// Returns the wait before the next attempt, and doubles the following wait.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.max);
        wait
    }

    /// Resets the next wait to the first wait.
    pub fn reset(&mut self) {
        self.next = self.first.min(self.max);
    }
}
