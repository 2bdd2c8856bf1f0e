//! Access to the clocks through a trait, so that a test can set the time.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// Source of the time. Decision functions take a [`Timestamp`]; only their callers need a clock.
pub trait Clock: Send + Sync + 'static {
    /// Returns the wall-clock time in UTC.
    fn now(&self) -> Timestamp;
    /// Returns a monotonic time, which a change of the wall clock does not affect. The time counts
    /// from an instant in this process, so another process cannot use the value.
    fn steady(&self) -> Duration;
}

/// Instant from which [`SystemClock`] counts its monotonic time.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Clock of the operating system.
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

/// Clock for tests, which changes only by its methods. Clones share the time.
#[derive(Debug, Clone)]
pub struct TestClock(Arc<Mutex<(Timestamp, Duration)>>);

impl TestClock {
    /// Creates a clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new((now, Duration::ZERO))))
    }

    /// Advances the wall clock and the monotonic time by `by`.
    pub fn advance(&self, by: SignedDuration) {
        self.set(by);
        let mut times = self.0.lock().expect("no holder of this lock panics");
        times.1 += Duration::try_from(by).unwrap_or_default();
    }

    /// Changes the wall clock by `by`, which may be negative. The monotonic time does not change.
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
