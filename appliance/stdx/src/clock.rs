//! The one door to the wall clock, so that every decision can be given a time by its test.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// Tells the time. Decisions take a [`Timestamp`]; only edges hold a clock.
pub trait Clock: Send + Sync + 'static {
    /// Now, in UTC.
    fn now(&self) -> Timestamp;
    /// Time that only goes forward, and not by leaps when somebody sets the clock; it counts from
    /// some moment of this process and means nothing to another.
    fn steady(&self) -> Duration;
}

/// The moment [`SystemClock`] counts from.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn steady(&self) -> Duration {
        START.elapsed()
    }
}

/// A clock that stands still until a test moves it; clones share the time.
#[derive(Debug, Clone)]
pub struct TestClock(Arc<Mutex<(Timestamp, Duration)>>);

impl TestClock {
    /// A clock that reads `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new((now, Duration::ZERO))))
    }

    /// Let time go by.
    pub fn advance(&self, by: SignedDuration) {
        self.set(by);
        let mut times = self.0.lock().expect("no holder of this lock panics");
        times.1 += Duration::try_from(by).unwrap_or_default();
    }

    /// Set the wall clock forward or back: no time goes by.
    pub fn set(&self, by: SignedDuration) {
        let mut times = self.0.lock().expect("no holder of this lock panics");
        times.0 = times.0.saturating_add(by).unwrap_or(Timestamp::MAX);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.0.lock().expect("no holder of this lock panics").0
    }

    fn steady(&self) -> Duration {
        self.0.lock().expect("no holder of this lock panics").1
    }
}
