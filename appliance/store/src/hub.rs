//! Ring of the latest changes in memory, and notification of watches.
//!
//! The writer only appends and notifies. Each watch reads at its own pace, and reads from the log
//! on disk when it is late. The ring therefore limits the memory for any number of watches, and no
//! watch delays a commit.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;

use crate::Change;

/// Maximum number of changes in memory.
const RING_ENTRIES: usize = 1024;
/// Maximum bytes of names and values in memory; the last change is kept even if it is larger.
const RING_BYTES: usize = 8 * 1024 * 1024;

/// Progress of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Last revision that is on disk and in the ring.
    pub revision: u64,
    /// False after the writer has stopped permanently.
    pub open: bool,
}

pub(crate) struct Hub {
    recent: Mutex<Recent>,
    progress: watch::Sender<Progress>,
}

/// Changes after revision `floor`, without gaps.
struct Recent {
    floor: u64,
    ring: VecDeque<Arc<Change>>,
    bytes: usize,
}

/// Limits of one read from the ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimit {
    /// Maximum number of changes.
    pub changes: usize,
    /// Maximum bytes of changes; the last change may exceed the limit.
    pub bytes: usize,
}

impl Hub {
    /// Creates an empty ring for a store at `revision`.
    pub fn new(revision: u64) -> Self {
        let recent = Recent { floor: revision, ring: VecDeque::new(), bytes: 0 };
        let progress = watch::Sender::new(Progress { revision, open: true });
        Self { recent: Mutex::new(recent), progress }
    }

    /// Appends committed changes, in order of revision, and wakes the watches.
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

    /// Empties the ring and continues after `revision`; watches of earlier revisions end.
    pub fn leap(&self, revision: u64) {
        *self.recent() = Recent { floor: revision, ring: VecDeque::new(), bytes: 0 };
    }

    /// Removes every change up to `floor` from memory, because it exceeds the log's age limit.
    pub fn forget(&self, floor: u64) {
        let mut recent = self.recent();
        while recent.ring.front().is_some_and(|change| change.revision <= floor) {
            recent.pop();
        }
    }

    /// Ends the watches after their last change, because the writer has stopped.
    pub fn close(&self) {
        self.progress.send_modify(|progress| progress.open = false);
    }

    /// Returns a receiver of the store's progress.
    pub fn subscribe(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Returns the current progress of the store.
    pub fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Returns the number of open watches.
    pub fn watches(&self) -> usize {
        self.progress.receiver_count()
    }

    /// Returns true if the ring has every change after revision `after`.
    pub fn reaches(&self, after: u64) -> bool {
        after >= self.recent().floor
    }

    /// Returns the changes after revision `after` that `wanted` accepts, up to `limit`, and the
    /// last revision that was examined. Returns `None` if the ring does not reach back to `after`.
    pub fn after(
        &self,
        after: u64,
        limit: BatchLimit,
        wanted: impl Fn(&Change) -> bool,
    ) -> Option<(Vec<Arc<Change>>, u64)> {
        let recent = self.recent();
        let skip = usize::try_from(after.checked_sub(recent.floor)?).unwrap_or(usize::MAX);
        let (mut taken, mut weight) = (Vec::new(), 0);
        let mut at = after;
        for change in recent.ring.iter().skip(skip) {
            if taken.len() == limit.changes || weight >= limit.bytes {
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
