//! Reads a resource in key order, from any key on, at the current or an earlier revision.
//!
//! An earlier state is the current state, in which the later changes of the log are undone: the
//! first change of an object after the requested revision holds the object's former state. Table
//! and log are read in one snapshot, so concurrent writers have no effect.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use redb::{ReadTransaction, ReadableDatabase};

use crate::error::{damaged, storage};
use crate::store::Store;
use crate::tables::{CHANGELOG, META_FLOOR, META_REVISION, OBJECTS, decode_change, decode_object};
use crate::tables::{Objects as _, Opened, change_key, meta};
use crate::{Error, Key, Stored};

/// Maximum bytes of former values that one walk holds. A revision that needs more is reported as
/// compacted.
pub const MAX_UNDONE_BYTES: usize = 16 * 1024 * 1024;

/// Range of a walk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Walk<'a> {
    /// API group and plural name, as in [`Key::resource`].
    pub resource: &'a str,
    /// Namespace; `None` means all namespaces.
    pub namespace: Option<&'a str>,
    /// Key after which the walk begins; an object with this key need not exist.
    pub after: Option<&'a Key>,
    /// Revision whose state is read; `None` is the newest.
    pub at: Option<u64>,
    /// True to not count the objects after the object at which the visitor stopped.
    pub uncounted: bool,
}

/// Result of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkResult {
    /// Revision whose state was read.
    pub revision: u64,
    /// Newest revision at the time of the walk.
    pub newest: u64,
    /// Number of objects after the object at which the visitor stopped; 0 if they are not counted.
    pub left: usize,
}

/// Former states of objects that changed after the requested revision; `None` if the object did not
/// exist.
type FormerObjects = BTreeMap<Vec<u8>, Option<Stored>>;

impl Store {
    /// Returns the last committed state of the object, and the last revision of the store.
    ///
    /// # Errors
    /// The disk fails.
    pub fn look(&self, key: &Key) -> Result<(u64, Option<Stored>), Error> {
        let txn = self.shared().db.begin_read().map_err(storage("read"))?;
        let table = txn.open_table(OBJECTS).map_err(storage("read"))?;
        let objects = Opened { table: &table, vault: &self.shared().vault };
        Ok((meta(&txn, META_REVISION)?, objects.object(key)?))
    }

    /// Calls `visit` with every object of `walk` in key order, until it returns `Break`. Blocks the
    /// thread, but does not delay writers.
    ///
    /// # Errors
    /// [`Error::Compacted`] if the log no longer reaches back to the revision, [`Error::Future`] if
    /// the revision is above the newest, or the disk fails.
    pub fn walk(
        &self,
        walk: Walk<'_>,
        mut visit: impl FnMut(Key, Stored) -> ControlFlow<()>,
    ) -> Result<WalkResult, Error> {
        let vault = &self.shared().vault;
        let txn = self.shared().db.begin_read().map_err(storage("read"))?;
        let newest = meta(&txn, META_REVISION)?;
        let revision = walk.at.unwrap_or(newest);
        if revision > newest {
            return Err(Error::Future { after: revision, current: newest });
        }
        let (first, end) = crate::key::bounds(walk.resource, walk.namespace);
        let mut from = first;
        if let Some(after) = walk.after {
            // The smallest key that is greater than this one.
            let mut next = after.encode();
            next.push(0);
            from = from.max(next);
        }
        if from >= end {
            return Ok(WalkResult { revision, newest, left: 0 });
        }
        let mut undone = self.undone(&txn, revision, newest, &from, &end)?.into_iter().peekable();
        let table = txn.open_table(OBJECTS).map_err(storage("read"))?;
        let mut rows = table.range(from.as_slice()..end.as_slice()).map_err(storage("read"))?;
        let mut row = rows.next().transpose().map_err(storage("read"))?;
        let (mut stopped, mut left) = (false, 0);
        while !(stopped && walk.uncounted) {
            let earlier = undone.peek().map(|(key, _)| key.as_slice());
            let current = row.as_ref().map(|(key, _)| key.value());
            let takes_earlier = match (earlier, current) {
                (None, None) => break,
                (Some(earlier), Some(current)) => earlier <= current,
                (earlier, _) => earlier.is_some(),
            };
            let shadows = takes_earlier && earlier == current;
            if takes_earlier {
                if let Some((bytes, Some(stored))) = undone.next() {
                    if stopped {
                        left += 1;
                    } else {
                        stopped = visit(named(&bytes)?, stored).is_break();
                    }
                }
            } else if let Some((bytes, value)) = &row {
                if stopped {
                    left += 1;
                } else {
                    let key = named(bytes.value())?;
                    let stored = decode_object(&key, value.value(), vault)?;
                    stopped = visit(key, stored).is_break();
                }
            }
            if !takes_earlier || shadows {
                row = rows.next().transpose().map_err(storage("read"))?;
            }
        }
        Ok(WalkResult { revision, newest, left })
    }

    /// Returns former states of objects in the range `from..end` that changed after `revision`.
    fn undone(
        &self,
        txn: &ReadTransaction,
        revision: u64,
        newest: u64,
        from: &[u8],
        end: &[u8],
    ) -> Result<FormerObjects, Error> {
        let mut undone = FormerObjects::new();
        if revision == newest {
            return Ok(undone);
        }
        let floor = meta(txn, META_FLOOR)?;
        if revision < floor {
            return Err(Error::Compacted { after: revision, floor });
        }
        let log = txn.open_table(CHANGELOG).map_err(storage("read"))?;
        let mut bytes = 0_usize;
        for row in log.range(revision + 1..).map_err(storage("read"))? {
            let (at, row) = row.map_err(storage("read"))?;
            let key = change_key(row.value()).ok_or_else(|| damaged("a log row without a key"))?;
            if key < from || key >= end || undone.contains_key(key) {
                continue;
            }
            let key = key.to_vec();
            let change = decode_change(at.value(), row.value(), &self.shared().vault)?;
            let previous = change.previous().cloned();
            bytes += key.len() + previous.as_ref().map_or(0, |stored| stored.value.len());
            if bytes > MAX_UNDONE_BYTES {
                return Err(Error::Compacted { after: revision, floor: at.value() });
            }
            undone.insert(key, previous);
        }
        Ok(undone)
    }
}

fn named(bytes: &[u8]) -> Result<Key, Error> {
    Key::decode(bytes).ok_or_else(|| damaged("an object without a name"))
}
