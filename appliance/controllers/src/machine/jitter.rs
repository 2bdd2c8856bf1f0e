//! Different waits for different BMCs, which would otherwise be contacted at the same time.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

/// Maximum reduction of a wait, in percent.
const PERCENT_MAX: u64 = 10;

/// Returns the wait, shortened by up to 10 %; the reduction depends on the key only.
pub fn shortened(wait: Duration, key: &impl Hash) -> Duration {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let part = hasher.finish() % 1000;
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let reduction = millis.saturating_mul(part) / 1000 * PERCENT_MAX / 100;
    Duration::from_millis(millis - reduction)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::shortened;

    #[test]
    fn waits_differ_by_a_tenth_and_are_never_longer() {
        let wait = Duration::from_secs(30);
        let waits: HashSet<Duration> = (0..100).map(|key: u32| shortened(wait, &key)).collect();
        assert!(waits.len() > 50, "{}", waits.len());
        assert!(waits.iter().all(|it| (Duration::from_secs(27)..=wait).contains(it)));
        assert_eq!(shortened(wait, &1), shortened(wait, &1));
        assert_eq!(shortened(Duration::ZERO, &1), Duration::ZERO);
    }
}
