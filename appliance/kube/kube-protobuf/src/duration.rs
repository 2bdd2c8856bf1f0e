//! Durations as Go writes them (`time.Duration.String`, `time.ParseDuration`).

/// Formats a duration: `1h2m3.5s`; below one second `1.5ms`, `250µs`, `7ns`; zero is `0s`.
pub(crate) fn text(nanoseconds: i64) -> String {
    let all = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    if all == 0 {
        return "0s".to_owned();
    }
    if all < 1_000_000_000 {
        let (unit, name) = match all {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            _ => (1_000_000, "ms"),
        };
        return format!("{sign}{}{name}", decimal(all, unit));
    }
    let seconds = decimal(all % 60_000_000_000, 1_000_000_000);
    let minutes = all / 60_000_000_000;
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// Returns `all / unit` as a decimal number; `unit` is a power of ten.
fn decimal(all: u64, unit: u64) -> String {
    let (whole, rest) = (all / unit, all % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = unit.ilog10() as usize;
    let rest = format!("{rest:0digits$}");
    format!("{whole}.{}", rest.trim_end_matches('0'))
}

/// Parses a duration in Go's notation, such as `1h30m`, to nanoseconds; `None` if invalid.
pub(crate) fn parse(text: &str) -> Option<i64> {
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
    let mut all = 0_i128;
    while !rest.is_empty() {
        let length = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
        let (number, after) = rest.split_at(length);
        let length = after.find(|sign: char| sign.is_ascii_digit() || sign == '.');
        let (unit, after) = after.split_at(length.unwrap_or(after.len()));
        all = all.checked_add(part(number, unit)?)?;
        rest = after;
    }
    i64::try_from(if negative { -all } else { all }).ok()
}

fn part(number: &str, unit: &str) -> Option<i128> {
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && decimals.is_empty() || number.len() > 32 {
        return None;
    }
    let read = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse().ok() };
    let whole: i128 = read(whole)?;
    let decimals = &decimals[..decimals.len().min(12)];
    let scale = 10_i128.pow(u32::try_from(decimals.len()).ok()?);
    let rest: i128 = read(decimals)?;
    whole.checked_mul(unit)?.checked_add(rest * unit / scale)
}

#[cfg(test)]
mod tests {
    use super::{parse, text};

    #[test]
    fn spans() {
        for (nanoseconds, written) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (245_000_000_000, "4m5s"),
            (3_661_001_000_000, "1h1m1.001s"),
            (-90_000_000_000, "-1m30s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(text(nanoseconds), written);
            assert_eq!(parse(written), Some(nanoseconds), "{written}");
        }
        assert_eq!(parse("1.5h"), Some(5_400_000_000_000));
        assert_eq!(parse("+.5s"), Some(500_000_000));
        for wrong in ["", "-", "1", "s", "1d", ".s", "1s2", "9999999h", "1e3s", "µ"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
