//! Points in time in NTP's format.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds from 1900 to 1970 (RFC 5905 figure 4).
const UNIX: u64 = 2_208_988_800;
/// One second in units of 2^-32 s.
const SECOND: i128 = 1 << 32;

/// Time since the start of the era, in units of 2^-32 s (RFC 5905 section 6). An era has 136 years.
/// The difference of two timestamps is right if they are less than half an era apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Timestamp(pub u64);

/// Offset between two clocks, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offset(pub i64);

impl Timestamp {
    /// Returns the current time of this machine's clock.
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// Returns the time from `earlier` to this timestamp.
    pub fn since(self, earlier: Self) -> Offset {
        // As signed numbers the difference is right over the end of an era.
        let units = self.0.wrapping_sub(earlier.0).cast_signed();
        let nanos = i128::from(units) * 1_000_000_000 / SECOND;
        Offset(i64::try_from(nanos).unwrap_or_default())
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let seconds = since.as_secs().wrapping_add(UNIX);
        let fraction = (u64::from(since.subsec_nanos()) << 32) / 1_000_000_000;
        Self((seconds << 32) | fraction)
    }
}

impl Offset {
    /// Returns the absolute value of the offset.
    pub fn abs(self) -> Duration {
        Duration::from_nanos(self.0.unsigned_abs())
    }

    /// Returns the time of `clock` after correction by this offset.
    pub fn after(self, clock: SystemTime) -> SystemTime {
        let moved =
            if self.0 < 0 { clock.checked_sub(self.abs()) } else { clock.checked_add(self.abs()) };
        moved.unwrap_or(clock)
    }
}

impl fmt::Display for Offset {
    /// Formats the offset in seconds, such as `+0.012 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { '-' } else { '+' };
        write!(f, "{sign}{:.3} s", self.abs().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_s_end_is_no_jump() {
        let before = Timestamp(u64::MAX - (1 << 31));
        let after = Timestamp(1 << 31);
        assert_eq!(after.since(before).abs().as_millis(), 1000);
        assert_eq!(before.since(after).to_string(), "-1.000 s");
    }

    #[test]
    fn unix_time_has_its_place() {
        // RFC 5905 figure 4: 1970-01-01.
        assert_eq!(Timestamp::from(UNIX_EPOCH), Timestamp(2_208_988_800 << 32));
        let half = UNIX_EPOCH + Duration::from_millis(500);
        assert_eq!(Timestamp::from(half), Timestamp((2_208_988_800 << 32) | (1 << 31)));
        let later = Timestamp::from(UNIX_EPOCH + Duration::from_millis(1250));
        assert_eq!(later.since(Timestamp::from(UNIX_EPOCH)).abs(), Duration::from_millis(1250));
    }

    #[test]
    fn a_clock_is_put_right() {
        let at = UNIX_EPOCH + Duration::from_secs(100);
        assert_eq!(Offset(-2_000_000_000).after(at), UNIX_EPOCH + Duration::from_secs(98));
        assert_eq!(Offset(2_000_000_000).after(at), UNIX_EPOCH + Duration::from_secs(102));
    }
}
