//! Sizes and durations as text for people.

/// Formats a size: `1.4 GiB`, `300 MiB`, `512 B`. Units are binary, with one decimal below ten.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value >= 10.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Formats a rate: `5.0 MiB/s` for `count` bytes in `millis` milliseconds.
pub fn rate(count: u64, millis: u64) -> String {
    format!("{}/s", bytes(count.saturating_mul(1000) / millis.max(1)))
}

/// Formats a duration in milliseconds: `0.4 s`, `12 s`, `3 min 5 s`.
pub fn seconds(millis: u64) -> String {
    match millis {
        0..10_000 => format!("{:.1} s", millis as f64 / 1000.0),
        10_000..120_000 => format!("{} s", millis / 1000),
        _ => format!("{} min {} s", millis / 60_000, millis / 1000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, rate, seconds};

    #[test]
    fn reads_well() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(300 << 20), "300 MiB");
        assert_eq!(rate(10 << 20, 2000), "5.0 MiB/s");
        assert_eq!(seconds(400), "0.4 s");
        assert_eq!(seconds(185_000), "3 min 5 s");
    }
}
