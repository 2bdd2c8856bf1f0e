//! Virtual time: a number that only events increase.

use std::time::{Duration, Instant};

/// Microseconds since the simulation began.
pub type Moment = u64;

/// One millisecond in microseconds, the unit of [`Moment`].
pub const MILLI: Moment = 1_000;
/// One second in microseconds, the unit of [`Moment`].
pub const SECOND: Moment = 1_000_000;

/// Virtual time for code that uses [`Instant`]. Only differences between instants count, so the
/// real start time of the simulation has no effect.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// A clock whose moment 0 is now.
    pub fn start() -> Self {
        Self { began: Instant::now() }
    }

    /// The moment as an [`Instant`].
    pub fn instant(self, at: Moment) -> Instant {
        self.began + Duration::from_micros(at)
    }

    /// The first moment that is not before `instant`.
    pub fn moment(self, instant: Instant) -> Moment {
        let nanos = instant.saturating_duration_since(self.began).as_nanos();
        u64::try_from(nanos.div_ceil(1_000)).unwrap_or(Moment::MAX)
    }
}
