//! Work queue of the collector, with due times.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::Work;

/// Maximum work items per batch; new changes are read between batches.
const BATCH: usize = 64;
/// Delay from the first queued item until the start of work, in which more items are collected.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// Delay before a failed work item is retried. Other items are not delayed.
const RETRY: Duration = Duration::from_secs(5);

/// Queue of work items without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    ready: BTreeSet<Work>,
    /// Due time of all ready items; later items do not change the time. `None` if no item is ready.
    due: Option<Instant>,
    aside: BTreeSet<Work>,
    /// Failed items with their retry time, the earliest first.
    retries: VecDeque<(Instant, Work)>,
}

impl Queue {
    /// Adds a work item; an item that waits for its retry is not added again.
    pub fn push(&mut self, work: Work, now: Instant) {
        if !self.aside.contains(&work) {
            self.ready.insert(work);
            self.due.get_or_insert(now + DEBOUNCE);
        }
    }

    /// Delays a failed item by [`RETRY`].
    pub fn put_aside(&mut self, work: Work, now: Instant) {
        self.ready.remove(&work);
        if self.aside.insert(work.clone()) {
            self.retries.push_back((now + RETRY, work));
        }
    }

    /// Returns the time of the next due work; `None` if the queue is empty.
    pub fn due(&self) -> Option<Instant> {
        let retry = self.retries.front().map(|(at, _)| *at);
        self.due.into_iter().chain(retry).min()
    }

    /// Removes and returns a batch of due items. The remaining items wait until [`Queue::gather`].
    pub fn take(&mut self, now: Instant) -> Vec<Work> {
        while let Some((_, work)) = self.retries.pop_front_if(|(at, _)| *at <= now) {
            self.aside.remove(&work);
            self.ready.insert(work);
        }
        self.due = None;
        std::iter::from_fn(|| self.ready.pop_first()).take(BATCH).collect()
    }

    /// Makes the items that remain after a batch due after [`DEBOUNCE`].
    pub fn gather(&mut self, now: Instant) {
        self.due = (!self.ready.is_empty()).then(|| now + DEBOUNCE);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{BATCH, DEBOUNCE, Queue, RETRY, Work};

    fn work(name: impl ToString) -> Work {
        Work::Ending(name.to_string())
    }

    #[test]
    fn a_stream_of_changes_moves_no_deadline() {
        let (mut queue, start) = (Queue::default(), Instant::now());
        assert_eq!(queue.due(), None);
        for at in 0..40 {
            queue.push(work("a"), start + Duration::from_millis(at));
        }
        assert_eq!(queue.due(), Some(start + DEBOUNCE));
        assert_eq!(queue.take(start + DEBOUNCE), [work("a")]);
        assert_eq!((queue.due(), queue.take(start + RETRY)), (None, vec![]));
    }

    #[test]
    fn many_come_in_batches() {
        let (mut queue, start) = (Queue::default(), Instant::now());
        for at in 0..=BATCH {
            queue.push(work(at), start);
        }
        let now = start + Duration::from_secs(1);
        assert_eq!(queue.take(now).len(), BATCH);
        // Changes are read before the next batch, even after a slow one.
        let now = now + Duration::from_secs(1);
        queue.gather(now);
        assert_eq!(queue.due(), Some(now + DEBOUNCE));
        assert_eq!(queue.take(now).len(), 1);
    }

    #[test]
    fn what_failed_waits_and_holds_up_nobody() {
        let (mut queue, start) = (Queue::default(), Instant::now());
        queue.put_aside(work("bad"), start);
        queue.push(work("bad"), start);
        queue.put_aside(work("bad"), start);
        assert_eq!(queue.due(), Some(start + RETRY));
        queue.push(work("good"), start);
        assert_eq!(queue.due(), Some(start + DEBOUNCE));
        assert_eq!(queue.take(start + DEBOUNCE), [work("good")]);
        assert_eq!(queue.due(), Some(start + RETRY));
        assert_eq!(queue.take(start + RETRY), [work("bad")]);
        queue.push(work("bad"), start + RETRY);
        assert_eq!(queue.take(start + RETRY + DEBOUNCE), [work("bad")]);
    }
}
