//! When records have outlived their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use jiff::Timestamp;
use store::Key;

/// Records whose end is kept in mind; more are found at the next start.
const MAX_RECORDS: usize = 100_000;

/// Ends of records, the nearest first.
#[derive(Debug, Default)]
pub(crate) struct Expiries(BinaryHeap<Reverse<(Timestamp, u64, Key)>>);

impl Expiries {
    /// A record that was written with `revision` at `since`, and lives so long.
    pub fn put(&mut self, key: &Key, revision: u64, since: Timestamp, lives: Duration) {
        if self.0.len() >= MAX_RECORDS {
            return;
        }
        if let Ok(end) = since.checked_add(lives) {
            self.0.push(Reverse((end, revision, key.clone())));
        }
    }

    /// The records that have come to their end, with the revision they were written with; those
    /// written again since are not over.
    pub fn due(&mut self, now: Timestamp) -> Vec<(Key, u64)> {
        let mut due = Vec::new();
        while let Some(Reverse((end, ..))) = self.0.peek()
            && *end <= now
        {
            due.extend(self.0.pop().map(|Reverse((_, revision, key))| (key, revision)));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use store::Key;

    use super::Expiries;

    #[test]
    fn the_nearest_end_comes_first() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let key = |name: &str| Key::new("/events", "x", name);
        let mut ends = Expiries::default();
        let hour = Duration::from_secs(3600);
        ends.put(&key("new"), 3, at(5000), hour);
        ends.put(&key("old"), 1, at(0), hour);
        ends.put(&key("older"), 2, at(-10), hour);
        assert_eq!(ends.due(at(3599)), [(key("older"), 2)]);
        assert_eq!(ends.due(at(3600)), [(key("old"), 1)]);
        assert_eq!(ends.due(at(8599)), []);
        assert_eq!(ends.due(at(8600)), [(key("new"), 3)]);
    }
}
