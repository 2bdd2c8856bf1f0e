//! The one door to the wall clock, so that every decision can be given a time by its test.

use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};

/// Tells the time. Decisions take a [`Timestamp`]; only edges hold a clock.
pub trait Clock: Send + Sync + 'static {
    /// Now, in UTC.
    fn now(&self) -> Timestamp;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that stands still until a test moves it; clones share the time.
#[derive(Debug, Clone)]
pub struct TestClock(Arc<Mutex<Timestamp>>);

impl TestClock {
    /// A clock that reads `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(now)))
    }

    /// Move the clock forward.
    pub fn advance(&self, by: SignedDuration) {
        let mut now = self.0.lock().expect("no holder of this lock panics");
        *now = now.saturating_add(by).unwrap_or(Timestamp::MAX);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("no holder of this lock panics")
    }
}
