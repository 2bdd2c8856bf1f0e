//! Queue of objects to reconcile, in the order of their due times. Each operation takes logarithmic
//! time.

use std::collections::{BTreeMap, HashMap};

use api::meta::ObjectKey;
use tokio::time::Instant;

/// Due time, and a number that makes turns with equal times unique.
type Turn = (Instant, u64);

/// Queue of waiting objects, with the set of objects that are being reconciled.
#[derive(Default)]
pub struct Queue {
    waiting: BTreeMap<Turn, ObjectKey>,
    turns: HashMap<ObjectKey, Turn>,
    /// Keys of objects that are being reconciled, with the next due time of each.
    running: HashMap<ObjectKey, Option<Instant>>,
    number: u64,
}

impl Queue {
    /// Schedules a key; an earlier due time of the key is kept. A key that is being reconciled is
    /// scheduled after this reconcile.
    pub fn put(&mut self, key: ObjectKey, when: Instant) {
        if let Some(again) = self.running.get_mut(&key) {
            *again = Some(again.map_or(when, |earlier| earlier.min(when)));
            return;
        }
        if let Some(turn) = self.turns.get(&key) {
            if turn.0 <= when {
                return;
            }
            self.waiting.remove(turn);
        }
        let turn = (when, self.number);
        self.number += 1;
        self.waiting.insert(turn, key.clone());
        self.turns.insert(key, turn);
    }

    /// Takes the key with the earliest due time, if due at `now`, as being reconciled.
    pub fn take(&mut self, now: Instant) -> Option<ObjectKey> {
        let first = self.waiting.first_entry().filter(|first| first.key().0 <= now)?;
        let key = first.remove();
        self.turns.remove(&key);
        self.running.insert(key.clone(), None);
        Some(key)
    }

    /// Ends the reconcile of a key.
    pub fn end(&mut self, key: &ObjectKey) {
        if let Some(Some(when)) = self.running.remove(key) {
            self.put(key.clone(), when);
        }
    }

    /// Returns the due time of the next key; `None` if no key waits.
    pub fn next(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(turn, _)| turn.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::meta::ObjectKey;
    use tokio::time::Instant;

    use super::Queue;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("default", name)
    }

    #[test]
    fn the_longest_due_key_is_first() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let at = |secs| now + Duration::from_secs(secs);
        for (name, secs) in [("c", 3), ("a", 1), ("b", 2), ("a2", 1), ("late", 9)] {
            queue.put(key(name), at(secs));
        }
        queue.put(key("c"), at(5));
        queue.put(key("late"), at(4));
        let taken = std::iter::from_fn(|| queue.take(at(3)));
        let taken: Vec<String> = taken.map(|key| key.name).collect();
        assert_eq!(taken, ["a", "a2", "b", "c"], "a later moment puts nothing off");
        assert_eq!(queue.next(), Some(at(4)), "an earlier one counts");
    }

    #[test]
    fn a_key_is_never_taken_twice() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.put(key("a"), now);
        assert!(queue.take(now).is_some());
        queue.put(key("a"), now + Duration::from_secs(9));
        queue.put(key("a"), now);
        assert_eq!((queue.take(now), queue.next()), (None, None));
        queue.end(&key("a"));
        assert_eq!(queue.take(now), Some(key("a")));
        queue.end(&key("a"));
        assert_eq!(queue.next(), None);
    }
}
