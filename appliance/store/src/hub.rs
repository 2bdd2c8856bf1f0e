//! The latest changes in memory, and the notification of watches.
//!
//! The writer only appends and notifies; each watch reads at its own pace and falls back to the log
//! on disk when it is late. So the memory is bounded by the ring, however many watches there are,
//! and no watch can delay a commit.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;

use crate::Change;

/// Changes kept in memory.
const RING_ENTRIES: usize = 1024;
/// Bytes of names and values kept in memory; at least the last change is kept.
const RING_BYTES: usize = 8 * 1024 * 1024;

/// Progress of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// The last revision that is on disk and in the ring.
    pub revision: u64,
    /// False once the writer has stopped for good.
    pub open: bool,
}

pub(crate) struct Hub {
    recent: Mutex<Recent>,
    progress: watch::Sender<Progress>,
}

/// Every change above `floor`, without gaps.
struct Recent {
    floor: u64,
    ring: VecDeque<Arc<Change>>,
    bytes: usize,
}

impl Hub {
    /// An empty ring of a store that stands at `revision`.
    pub fn new(revision: u64) -> Self {
        let recent = Recent { floor: revision, ring: VecDeque::new(), bytes: 0 };
        let progress = watch::Sender::new(Progress { revision, open: true });
        Self { recent: Mutex::new(recent), progress }
    }

    /// Append committed changes, in order of revision, and wake the watches.
    pub fn publish(&self, changes: Vec<Change>) {
        let Some(revision) = changes.last().map(|change| change.revision) else { return };
        let mut recent = self.recent();
        for change in changes {
            recent.bytes += change.weight();
            recent.ring.push_back(Arc::new(change));
        }
        while recent.ring.len() > RING_ENTRIES
            || (recent.bytes > RING_BYTES && recent.ring.len() > 1)
        {
            recent.pop();
        }
        drop(recent);
        self.progress.send_modify(|progress| progress.revision = revision);
    }

    /// Revisions go on after `revision`; no watch from before it can be served from here on.
    pub fn leap(&self, revision: u64) {
        *self.recent() = Recent { floor: revision, ring: VecDeque::new(), bytes: 0 };
    }

    /// Drop every change up to `floor` from memory: it has outlived the log's age limit.
    pub fn forget(&self, floor: u64) {
        let mut recent = self.recent();
        while recent.ring.front().is_some_and(|change| change.revision <= floor) {
            recent.pop();
        }
    }

    /// The writer has stopped: watches end once they have seen everything.
    pub fn close(&self) {
        self.progress.send_modify(|progress| progress.open = false);
    }

    /// Subscribes to the progress.
    pub fn subscribe(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Current progress of the store.
    pub fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Number of subscribed watches.
    pub fn watches(&self) -> usize {
        self.progress.receiver_count()
    }

    /// True if the ring reaches back to just after `after`.
    pub fn reaches(&self, after: u64) -> bool {
        after >= self.recent().floor
    }

    /// Up to `limit` changes above `after` that `wanted` takes, and of `bytes` but for the last of
    /// them, and the revision they bring the reader to; `None` when the ring no longer reaches back
    /// that far.
    pub fn after(
        &self,
        after: u64,
        (limit, bytes): (usize, usize),
        wanted: impl Fn(&Change) -> bool,
    ) -> Option<(Vec<Arc<Change>>, u64)> {
        let recent = self.recent();
        let skip = usize::try_from(after.checked_sub(recent.floor)?).unwrap_or(usize::MAX);
        let (mut taken, mut weight) = (Vec::new(), 0);
        let mut at = after;
        for change in recent.ring.iter().skip(skip) {
            if taken.len() == limit || weight >= bytes {
                break;
            }
            at = change.revision;
            if wanted(change) {
                weight += change.weight();
                taken.push(change.clone());
            }
        }
        Some((taken, at))
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().expect("no holder of this lock panics")
    }
}

impl Recent {
    fn pop(&mut self) {
        if let Some(change) = self.ring.pop_front() {
            self.bytes -= change.weight();
            self.floor = change.revision;
        }
    }
}
