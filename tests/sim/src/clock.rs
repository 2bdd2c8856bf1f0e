//! Virtual time: a number that only events move.

use std::time::{Duration, Instant};

/// Microseconds since the simulation began.
pub type Moment = u64;

/// A millisecond.
pub const MILLI: Moment = 1_000;
/// A second.
pub const SECOND: Moment = 1_000_000;

/// Virtual time for those who count in [`Instant`]s. Only differences between them count, so that
/// it matters to nobody when the simulation was started.
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
