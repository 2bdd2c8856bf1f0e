//! Order of preference of API versions (apimachinery `pkg/version/helpers.go`).

use std::cmp::Reverse;

/// Returns a sort key that puts preferred versions first: stable before beta and alpha, newer
/// before older. Other names come last, in alphabetical order.
pub fn preference(version: &str) -> impl Ord + use<> {
    let parsed = parse(version);
    let word = if parsed.is_none() { version.to_owned() } else { String::new() };
    (Reverse(parsed), word)
}

/// Parses `v1beta2` to level (2 stable, 1 beta, 0 alpha), major and minor number; else `None`.
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = |text: &str| text.find(|one: char| !one.is_ascii_digit()).unwrap_or(text.len());
    let (major, rest) = rest.split_at(digits(rest));
    let major = number(major)?;
    let (level, minor) = match rest {
        "" => return Some((2, major, 0)),
        _ if rest.starts_with("beta") => (1, rest.strip_prefix("beta")?),
        _ => (0, rest.strip_prefix("alpha")?),
    };
    Some((level, major, number(minor)?))
}

fn number(text: &str) -> Option<u64> {
    let plain =
        !text.is_empty() && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::preference;

    #[test]
    fn newest_and_most_stable_first() {
        let ordered = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v01",
            "v1gamma1",
        ];
        let mut shuffled = ordered;
        shuffled.reverse();
        shuffled.sort_by_key(|version| preference(version));
        assert_eq!(shuffled, ordered);
    }
}
