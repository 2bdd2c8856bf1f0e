//! Parser of durations on the command line.

use std::time::Duration;

/// Parses a duration such as `90s`, `5m` or `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let read = match text.parse::<u32>() {
        Ok(seconds) => jiff::SignedDuration::from_secs(i64::from(seconds)),
        Err(_) => text
            .parse::<jiff::SignedDuration>()
            .map_err(|_| "expected a duration such as 90s, 5m or 1h")?,
    };
    // A longer time than a month is a slip, and would overflow a deadline.
    if read.is_positive() && read.as_hours() <= 24 * 31 {
        return Ok(read.unsigned_abs());
    }
    Err("expected more than 0 and at most 31 days".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Duration, duration};

    #[test]
    fn durations() {
        for (text, seconds) in [("90s", 90), ("5m", 300), ("1h", 3600), ("90", 90), ("1h30m", 5400)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "soon", "-1s", "0s", "99999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
