//! Date, time and duration formats.

use std::sync::LazyLock;

use regex::Regex;

/// Returns true for `2006-01-02`, if the day exists.
pub(crate) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !shaped {
        return false;
    }
    let number = |range| text.get(range).and_then(|part: &str| part.parse::<u32>().ok());
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// Returns true for RFC 3339 as upstream parses it: any character may precede the fraction, and
/// text after a second `t` is ignored.
pub(crate) fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, mut rest)) = text.split_at_checked(8) else { return false };
    let fields: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = fields.as_slice() else { return false };
    let is_two_digits =
        |field: &str, max: &str| field.len() == 2 && is_digits(field) && field <= max;
    if !is_two_digits(hour, "23") || !is_two_digits(minute, "59") || !is_two_digits(second, "59") {
        return false;
    }
    if is_zone(rest) {
        return true;
    }
    let mut chars = rest.chars();
    if matches!(chars.next(), None | Some('\n')) {
        return false;
    }
    rest = chars.as_str();
    let zone = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    zone.len() < rest.len() && is_zone(zone)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_zone(text: &str) -> bool {
    let is_offset = |text: &str| {
        text.len() == 5
            && text.split_once(':').is_some_and(|(hours, minutes)| {
                hours.len() == 2 && is_digits(hours) && is_digits(minutes)
            })
    };
    text == "z" || text.strip_prefix(['+', '-']).is_some_and(is_offset)
}

/// Returns true for a Go duration, or any text with a number before a unit (as in Scala).
pub(crate) fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_loose_duration(text)
}

/// Returns true for the syntax of `time.ParseDuration`. Overflow of the sum is irrelevant, because
/// the loose form accepts such a text anyway.
fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if (whole.is_empty() && fraction.is_empty())
            || (!whole.is_empty() && whole.parse::<i64>().is_err())
        {
            return false;
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if !matches!(unit, "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h") {
            return false;
        }
        rest = after;
    }
    true
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

static NUMBER_AND_UNIT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)").ok());

fn is_loose_duration(text: &str) -> bool {
    let Some(pattern) = NUMBER_AND_UNIT.as_ref() else { return false };
    let mut found = false;
    for captures in pattern.captures_iter(text) {
        if captures[1].parse::<i64>().is_err() {
            return false;
        }
        found |= is_unit(&captures[2].to_lowercase());
    }
    found
}

fn is_unit(unit: &str) -> bool {
    const WHOLE: [&str; 11] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const BEGINNINGS: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    WHOLE.contains(&unit) || BEGINNINGS.iter().any(|beginning| unit.starts_with(beginning))
}
