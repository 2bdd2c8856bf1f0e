//! Expiry times of records, by the monotonic clock (unaffected by changes of the wall clock).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use store::Key;

/// Maximum records with a tracked expiry; more records wait for the next read of all objects.
const MAX_RECORDS: usize = 100_000;

/// Expiry times of records by the monotonic clock, the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    ends: BinaryHeap<Reverse<(Duration, u64, Key)>>,
    /// Expiry times from before the running survey, by key and revision.
    known: HashMap<(Key, u64), Duration>,
}

impl Expiries {
    /// Returns an empty list for the next survey. A record that the survey finds again keeps its
    /// expiry time, even if the wall clock was changed.
    pub fn again(self) -> Self {
        let known =
            self.ends.into_iter().map(|Reverse((end, revision, key))| ((key, revision), end));
        Self { ends: BinaryHeap::new(), known: known.collect() }
    }

    /// Drops the expiry times from before the survey. Call after the survey is complete.
    pub fn surveyed(&mut self) {
        self.known = HashMap::new();
    }

    /// Adds a record that was written at `revision` and expires at `end`.
    pub fn put(&mut self, key: &Key, revision: u64, end: Duration) {
        if self.ends.len() < MAX_RECORDS {
            let known = self.known.get(&(key.clone(), revision));
            self.ends.push(Reverse((known.copied().unwrap_or(end), revision, key.clone())));
        }
    }

    /// Removes and returns the records that expired before `now`, each with the revision of its
    /// write. The caller must skip a record that was written again later.
    pub fn due(&mut self, now: Duration) -> Vec<(Key, u64)> {
        let mut due = Vec::new();
        while let Some(Reverse((end, ..))) = self.ends.peek()
            && *end <= now
        {
            due.extend(self.ends.pop().map(|Reverse((_, revision, key))| (key, revision)));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use store::Key;

    use super::Expiries;

    fn key(name: &str) -> Key {
        Key::new("/events", "x", name)
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_nearest_end_comes_first() {
        let mut ends = Expiries::default();
        ends.put(&key("new"), 3, at(8600));
        ends.put(&key("old"), 1, at(3600));
        ends.put(&key("older"), 2, at(3590));
        assert_eq!(ends.due(at(3599)), [(key("older"), 2)]);
        assert_eq!(ends.due(at(3600)), [(key("old"), 1)]);
        assert_eq!(ends.due(at(8599)), []);
        assert_eq!(ends.due(at(8600)), [(key("new"), 3)]);
    }

    #[test]
    fn a_record_that_is_found_again_keeps_its_end() {
        let mut ends = Expiries::default();
        ends.put(&key("a"), 1, at(3600));
        ends.put(&key("b"), 2, at(3600));
        let mut ends = ends.again();
        // By a clock that was set forward meanwhile, both would be expired.
        ends.put(&key("a"), 1, at(0));
        ends.put(&key("b"), 3, at(10));
        ends.surveyed();
        assert_eq!(ends.due(at(3599)), [(key("b"), 3)]);
        assert_eq!(ends.due(at(3600)), [(key("a"), 1)]);
    }
}
