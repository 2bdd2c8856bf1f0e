//! Watches of the changes of one resource, or of all.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{Stream, stream};
use redb::ReadableDatabase;
use tokio::sync::watch;

use crate::error::{damaged, storage};
use crate::hub::{BatchLimit, Progress};
use crate::shared::Shared;
use crate::tables::{CHANGELOG, META_FLOOR, decode_change, meta};
use crate::{Change, Error};

/// Maximum number of changes read from memory at once, while the ring is locked.
const RING_BATCH: usize = 64;
/// Maximum number of log rows read at once before other tasks run.
const LOG_BATCH: usize = 128;
/// Maximum bytes of changes that a watch reads ahead; the last change may exceed the limit.
const AHEAD_BYTES: usize = 1024 * 1024;
/// Maximum bytes that a watch holds while its reader is stalled.
const RESTING_BYTES: usize = 64 * 1024;

/// Watch of a resource, of only one namespace of it, or of all resources. Returns every change in
/// order of revision.
pub struct Watch {
    shared: Arc<Shared>,
    resource: Option<String>,
    namespace: Option<String>,
    /// Last examined revision. Each change up to it was returned, is in `pending`, or was not
    /// requested.
    at: u64,
    pending: VecDeque<Change>,
    progress: watch::Receiver<Progress>,
}

impl Watch {
    pub(crate) fn new(
        shared: Arc<Shared>,
        resource: Option<&str>,
        namespace: Option<&str>,
        after: u64,
    ) -> Result<Self, Error> {
        let txn = shared.db.begin_read().map_err(storage("read"))?;
        let floor = meta(&txn, META_FLOOR)?;
        if after < floor && !shared.hub.reaches(after) {
            return Err(Error::Compacted { after, floor });
        }
        let current = shared.revision();
        if after > current {
            return Err(Error::Future { after, current });
        }
        let progress = shared.hub.subscribe();
        Ok(Self {
            shared,
            resource: resource.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
            at: after,
            pending: VecDeque::new(),
            progress,
        })
    }

    /// Returns the next change; waits for it. Dropping the future loses no change.
    ///
    /// # Errors
    /// [`Error::Lagged`] if the log no longer has the next changes of this watch (list again);
    /// [`Error::Closed`] if the store was closed.
    pub async fn next(&mut self) -> Result<Change, Error> {
        loop {
            if let Some(change) = self.pending.pop_front() {
                return Ok(change);
            }
            // Marked as seen before the read, so that a change published meanwhile notifies again.
            let open = self.progress.borrow_and_update().open;
            let before = self.at;
            self.fill()?;
            if self.at > before {
                if self.pending.is_empty() {
                    tokio::task::yield_now().await;
                }
                continue;
            }
            if !open || self.progress.changed().await.is_err() {
                return Err(Error::Closed);
            }
        }
    }

    /// Returns the revision up to which every requested change was returned, for a bookmark event.
    /// Only [`Watch::next`] advances it.
    pub fn revision(&self) -> u64 {
        self.pending.front().map_or(self.at, |change| change.revision - 1)
    }

    /// Drops changes that were read ahead, beyond 64 KiB; they are read again later. Saves memory
    /// while the reader is stalled.
    pub fn rest(&mut self) {
        let mut bytes = 0;
        let mut fits = |change: &Change| {
            bytes += change.weight();
            bytes <= RESTING_BYTES
        };
        let keep = self.pending.iter().take_while(|change| fits(change)).count();
        if let Some(first) = self.pending.get(keep) {
            self.at = first.revision - 1;
            self.pending.truncate(keep);
            self.pending.shrink_to_fit();
        }
    }

    /// Returns the bytes of the changes that were read ahead.
    pub fn held(&self) -> usize {
        self.pending.iter().map(Change::weight).sum()
    }

    /// Converts to a stream, which ends after its first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Change, Error>> + Send {
        stream::unfold(Some(self), |watch| async {
            let mut watch = watch?;
            match watch.next().await {
                Ok(change) => Some((Ok(change), Some(watch))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    fn wants(&self, change: &Change) -> bool {
        self.resource.as_ref().is_none_or(|resource| change.key.resource == *resource)
            && self.namespace.as_ref().is_none_or(|namespace| change.key.namespace == *namespace)
    }

    /// Reads the changes after `at`, from memory or else from the log.
    fn fill(&mut self) -> Result<(), Error> {
        let limit = BatchLimit { changes: RING_BATCH, bytes: AHEAD_BYTES };
        match self.shared.hub.after(self.at, limit, |change| self.wants(change)) {
            Some((changes, at)) => {
                self.pending.extend(changes.iter().map(|change| Change::clone(change)));
                self.at = at;
                Ok(())
            }
            None => self.fill_from_log(),
        }
    }

    fn fill_from_log(&mut self) -> Result<(), Error> {
        let txn = self.shared.db.begin_read().map_err(storage("read"))?;
        let floor = meta(&txn, META_FLOOR)?;
        if self.at < floor {
            return Err(Error::Lagged { at: self.at, floor });
        }
        let log = txn.open_table(CHANGELOG).map_err(storage("read"))?;
        let rows = log.range(self.at + 1..).map_err(storage("read"))?;
        let (before, mut weight) = (self.at, 0);
        for row in rows.take(LOG_BATCH) {
            if weight >= AHEAD_BYTES {
                break;
            }
            let (revision, bytes) = row.map_err(storage("read"))?;
            let change = decode_change(revision.value(), bytes.value(), &self.shared.vault)?;
            self.at = change.revision;
            if self.wants(&change) {
                weight += change.weight();
                self.pending.push_back(change);
            }
        }
        match self.at > before {
            true => Ok(()),
            false => Err(damaged(format!("the log has no revision {}", before + 1))),
        }
    }
}
