//! Times and durations as short text for small screens.

use jiff::Timestamp;
use jiff::tz::Offset;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Formats a time of day as `14:02`, with the offset in seconds east of UTC.
pub fn time_of_day(at: Timestamp, utc_offset_seconds: i32) -> String {
    let offset = Offset::from_seconds(utc_offset_seconds).unwrap_or(Offset::UTC);
    let local = offset.to_datetime(at);
    format!("{:02}:{:02}", local.hour(), local.minute())
}

/// Formats an age: `43 s ago`. A time in the future gives `now`: the clock may have been set back.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    match u64::try_from(now.duration_since(at).as_secs()) {
        Ok(0) | Err(_) => "now".to_owned(),
        Ok(seconds) => format!("{} ago", rough(seconds)),
    }
}

/// Formats a duration with one figure and its unit: `43 s`, `12 min`, `5 h`, `2 days`.
pub fn rough(seconds: u64) -> String {
    match seconds {
        0..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        _ if seconds < 2 * DAY => "1 day".to_owned(),
        _ => format!("{} days", seconds / DAY),
    }
}

/// Formats an uptime with two figures: `12d 4h`, `4h 7m`, `3m`.
pub fn uptime(seconds: u64) -> String {
    match seconds {
        0..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h {}m", seconds / HOUR, seconds % HOUR / MINUTE),
        _ => format!("{}d {}h", seconds / DAY, seconds % DAY / HOUR),
    }
}

/// Formats a size for screens with 21 columns: `212M`, `4G`, `18.2G`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "K", "M", "G", "T"];
    let mut unit = 0;
    let mut value = count as f64;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let tenths = format!("{value:.1}");
    let short = if unit < 3 { format!("{value:.0}") } else { tenths };
    format!("{}{}", short.strip_suffix(".0").unwrap_or(&short), UNITS[unit])
}
