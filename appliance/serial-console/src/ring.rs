//! Recording of one console: the newest bytes, in memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum length of one recording, in bytes.
pub(crate) const RING_BYTES: usize = 256 * 1024;

/// Memory that all recordings share.
#[derive(Debug, Clone)]
pub(crate) struct Budget(Arc<AtomicUsize>);

impl Budget {
    /// Creates a budget of this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Takes up to `wanted` bytes; returns how many.
    fn take(&self, wanted: usize) -> usize {
        let update = |left: usize| Some(left - left.min(wanted));
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        before.unwrap_or_else(|left| left).min(wanted)
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Newest bytes of a console. When the budget is used up, a recording stops growing and drops its
/// own oldest bytes.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: VecDeque<u8>,
    /// Bytes that this recording has taken from the budget.
    granted: usize,
    budget: Budget,
}

impl Ring {
    pub(crate) fn new(budget: Budget) -> Self {
        Self { bytes: VecDeque::new(), granted: 0, budget }
    }

    /// Appends bytes and drops the oldest ones above the limits.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let wanted = (self.bytes.len() + bytes.len()).min(RING_BYTES);
        self.granted += self.budget.take(wanted.saturating_sub(self.granted));
        let bytes = &bytes[bytes.len().saturating_sub(self.granted)..];
        let excess = (self.bytes.len() + bytes.len()).saturating_sub(self.granted);
        self.bytes.drain(..excess);
        self.bytes.extend(bytes);
    }

    /// Returns the newest `limit` bytes, from the start of a line if a line ends among them.
    pub(crate) fn tail(&self, limit: usize) -> Vec<u8> {
        let start = self.bytes.len().saturating_sub(limit);
        let tail: Vec<u8> = self.bytes.range(start..).copied().collect();
        match tail.iter().position(|byte| *byte == b'\n') {
            Some(end) if start > 0 => tail[end + 1..].to_vec(),
            _ => tail,
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.budget.give_back(self.granted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_bytes_stay() {
        let mut ring = Ring::new(Budget::new(usize::MAX));
        for _ in 0..3 {
            ring.push(&vec![b'a'; RING_BYTES / 2]);
        }
        ring.push(b"end");
        assert_eq!(ring.bytes.len(), RING_BYTES);
        assert!(ring.tail(usize::MAX).ends_with(b"aend"));
        ring.push(&vec![b'z'; RING_BYTES * 2]);
        assert_eq!(ring.tail(usize::MAX), vec![b'z'; RING_BYTES]);
    }

    #[test]
    fn a_tail_begins_with_a_line() {
        let mut ring = Ring::new(Budget::new(100));
        ring.push(b"one\r\ntwo\r\nthree");
        assert_eq!(ring.tail(12), b"two\r\nthree");
        assert_eq!(ring.tail(8), b"three");
        assert_eq!(ring.tail(100), b"one\r\ntwo\r\nthree");
        assert_eq!(ring.tail(3), b"ree");
    }

    #[test]
    fn all_recordings_share_a_budget_and_give_it_back() {
        let budget = Budget::new(10);
        let (mut first, mut second) = (Ring::new(budget.clone()), Ring::new(budget.clone()));
        first.push(b"1234567");
        second.push(b"abcdefg");
        assert_eq!(second.tail(100), b"efg");
        first.push(b"890x");
        assert_eq!(first.tail(100), b"567890x", "its own oldest bytes went");
        drop(first);
        second.push(b"hijklmnopq");
        assert_eq!(second.tail(100), b"hijklmnopq");
        let mut third = Ring::new(budget);
        third.push(b"x");
        assert_eq!(third.tail(100), b"");
    }
}
