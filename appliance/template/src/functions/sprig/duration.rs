//! Durations (Go `time.Duration`). Dates are refused, because they need a clock and a zone.

use crate::function::Type::Any;
use crate::function::{Function, exact};
use crate::value::Value;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] = &[
    exact("duration", &[Any], |args| {
        let seconds = match args.any(0) {
            Value::Text(text) => clamped(text),
            Value::Int64(seconds) => *seconds,
            _ => 0,
        };
        args.made(shown(seconds.wrapping_mul(SECOND)))
    }),
    exact("durationRound", &[Any], |args| {
        let nanoseconds = match args.any(0) {
            Value::Text(text) => parsed(text).unwrap_or(0),
            Value::Int64(nanoseconds) => *nanoseconds,
            _ => 0,
        };
        args.made(rounded(nanoseconds.unsigned_abs()))
    }),
];

/// Parses an int. A number out of range becomes the nearest int, any other text 0.
fn clamped(text: &str) -> i64 {
    match text.parse::<i64>() {
        Ok(number) => number,
        Err(error) => match error.kind() {
            std::num::IntErrorKind::PosOverflow => i64::MAX,
            std::num::IntErrorKind::NegOverflow => i64::MIN,
            _ => 0,
        },
    }
}

/// Formats as `time.Duration.String`: `1h2m3.5s`; below a second in ns, µs or ms.
fn shown(nanoseconds: i64) -> String {
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    let second = SECOND.unsigned_abs();
    if total < second {
        let (unit, size) = match total {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            _ => ("ms", 1_000_000),
        };
        return format!("{sign}{}{unit}", total as f64 / size as f64);
    }
    let (seconds, part) = (total / second, total % second);
    let part = match part {
        0 => String::new(),
        part => format!(".{part:09}").trim_end_matches('0').to_owned(),
    };
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}{part}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}{part}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}{part}s"),
    }
}

/// Formats a duration in the largest unit that is shorter than the duration, rounded down.
fn rounded(nanoseconds: u64) -> String {
    let units =
        [(365 * DAY, "y"), (30 * DAY, "mo"), (DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s")];
    for (size, name) in units {
        let size = size.unsigned_abs();
        if nanoseconds > size {
            return format!("{}{name}", nanoseconds / size);
        }
    }
    "0s".to_owned()
}

/// Parses nanoseconds as `time.ParseDuration`; `None` if the text is invalid.
fn parsed(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && part.is_empty() || part.contains('.') {
            return None;
        }
        let name = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (name, after) = after.split_at(name);
        let unit = match name {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => MINUTE,
            "h" => HOUR,
            _ => return None,
        };
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let fraction: f64 = if part.is_empty() { 0.0 } else { format!(".{part}").parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        total = total.checked_add((fraction * unit as f64) as i64)?;
        rest = after;
    }
    Some(if negative { -total } else { total })
}
