//! Restarts of the supervisor after it ended, and the limit after which the machine is restarted
//! instead.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use stdx::Backoff;

/// First wait before a restart, short enough that an owner sees no interruption.
const FIRST: Duration = Duration::from_millis(200);
/// Maximum wait between two starts.
const LONGEST: Duration = Duration::from_secs(5);
/// Number of supervisor exits within [`WINDOW`] after which the machine is restarted.
const TRIES: usize = 6;
/// Period for counting exits of the supervisor.
const WINDOW: Duration = Duration::from_secs(300);

/// Action of process 1 after the supervisor has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Starts the supervisor again after a wait.
    StartAfter(Duration),
    /// Restarts the machine. The boot loader counts the starts, and finally takes the other slot.
    Restart,
}

/// Times of the recent ends of the supervisor.
#[derive(Debug, Default)]
pub struct Restarts(VecDeque<Instant>);

impl Restarts {
    /// Records an end of the supervisor at `now` and returns the next action.
    pub fn ended(&mut self, now: Instant) -> Next {
        while self.0.front().is_some_and(|end| now.duration_since(*end) > WINDOW) {
            self.0.pop_front();
        }
        self.0.push_back(now);
        if self.0.len() >= TRIES {
            return Next::Restart;
        }
        let mut waits = Backoff::new(FIRST, LONGEST);
        Next::StartAfter(self.0.iter().fold(FIRST, |_, _| waits.next_wait()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Next, Restarts, TRIES, WINDOW};

    #[test]
    fn waits_grow_until_the_system_is_given_up() {
        let (mut restarts, now) = (Restarts::default(), Instant::now());
        let ends: Vec<_> = (0..TRIES).map(|_| restarts.ended(now)).collect();
        let millis = [200, 400, 800, 1600, 3200].map(Duration::from_millis).map(Next::StartAfter);
        assert_eq!(ends[..TRIES - 1], millis);
        assert_eq!(ends[TRIES - 1], Next::Restart);
    }

    #[test]
    fn an_end_now_and_then_is_forgiven() {
        let (mut restarts, mut now) = (Restarts::default(), Instant::now());
        for _ in 0..3 * TRIES {
            now += WINDOW / 2;
            let next = restarts.ended(now);
            assert!(
                matches!(next, Next::StartAfter(wait) if wait < Duration::from_secs(1)),
                "{next:?}"
            );
        }
    }
}
