//! View of a write closure on the store, including the closure's own changes.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;

use crate::error::damaged;
use crate::tables::Objects;
use crate::{Change, ChangeKind, Error, FreeSpace, Key, Stored};

/// Maximum size of a value in bytes: the request limit of a Kubernetes API server, and 64 KiB for
/// the fields that the server adds.
pub const MAX_VALUE_BYTES: usize = 3 * 1024 * 1024 + 64 * 1024;

/// Maximum size of the changes of one closure in bytes, including names and replaced values.
pub const MAX_TXN_BYTES: usize = 32 * 1024 * 1024;

/// Maximum length of a key's three parts in bytes, far above the 253 + 63 + 253 that Kubernetes
/// allows.
const MAX_KEY_BYTES: usize = 4096;

/// Buffer of the changes of one write closure: a closure that fails changes nothing.
///
/// The revisions that methods return become valid when [`crate::Store::write`] returns. Revisions
/// of a failed closure are used again.
pub struct Txn<'a> {
    base: &'a dyn Objects,
    overlay: BTreeMap<Key, Option<Stored>>,
    changes: Vec<Change>,
    next: u64,
    free_space: FreeSpace,
    leap: Option<u64>,
    bytes: usize,
    limit: usize,
    touched: bool,
    /// First error. The whole closure then fails, even if the closure ignores the error.
    failed: RefCell<Option<Error>>,
}

/// Changes of a closure to be committed.
pub(crate) struct CommitSet {
    /// Changes in the order of their revisions.
    pub changes: Vec<Change>,
    /// Revision to continue after, before `changes`; `None` to continue without a jump.
    pub leap: Option<u64>,
    /// True to commit even without changes.
    pub touched: bool,
}

impl<'a> Txn<'a> {
    /// Creates a view on `base`. The first change gets the revision `next`; the disk has the free
    /// space `free_space`.
    pub(crate) fn new(base: &'a dyn Objects, next: u64, free_space: FreeSpace) -> Self {
        Self {
            base,
            overlay: BTreeMap::new(),
            changes: Vec::new(),
            next,
            free_space,
            leap: None,
            bytes: 0,
            limit: MAX_TXN_BYTES,
            touched: false,
            failed: RefCell::new(None),
        }
    }

    /// Returns the free space of the disk, minus the bytes of other writes in the same commit.
    pub fn free_space(&self) -> FreeSpace {
        self.free_space
    }

    /// Returns the object, including this closure's own changes; `None` if it does not exist.
    pub fn get(&self, key: &Key) -> Result<Option<Stored>, Error> {
        if let Some(own) = self.overlay.get(key) {
            return Ok(own.clone());
        }
        self.note(self.base.object(key))
    }

    /// Returns every object of `resource`, or of only its `namespace`, in key order, including this
    /// closure's own changes.
    pub fn list(
        &self,
        resource: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<(Key, Stored)>, Error> {
        let within = |key: &Key| {
            key.resource == resource && namespace.is_none_or(|namespace| key.namespace == namespace)
        };
        let mut rows = self.note(self.base.objects(resource, namespace))?;
        let own: Vec<_> = self.overlay.iter().filter(|(key, _)| within(key)).collect();
        if !own.is_empty() {
            rows.retain(|(key, _)| !self.overlay.contains_key(key));
            let own = own.into_iter();
            rows.extend(own.filter_map(|(key, row)| Some((key.clone(), row.clone()?))));
            rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        Ok(rows)
    }

    /// Returns keys of objects in `namespace` of `resource` to delete, so that `keep` remain;
    /// includes this closure's own changes. Repeatedly chooses the oldest object of the `subject`
    /// with most objects, so no subject displaces objects of others. Decrypts no object, because it
    /// runs at each write of a kind with a limit.
    pub fn beyond(
        &self,
        resource: &str,
        namespace: &str,
        keep: usize,
        subject: impl Fn(&str) -> &str,
    ) -> Result<Vec<Key>, Error> {
        let within = |key: &Key| key.resource == resource && key.namespace == namespace;
        let own: BTreeMap<Vec<u8>, Option<u64>> = self
            .overlay
            .iter()
            .filter(|(key, _)| within(key))
            .map(|(key, row)| (key.encode(), row.as_ref().map(|row| row.revision)))
            .collect();
        let visit = |each: &mut dyn FnMut(&[u8], u64)| {
            let stored = &mut |key: &[u8], revision| {
                if !own.contains_key(key) {
                    each(key, revision);
                }
            };
            self.note(self.base.revisions(resource, namespace, stored))?;
            for (key, revision) in &own {
                revision.iter().for_each(|revision| each(key, *revision));
            }
            Ok(())
        };
        let mut count = 0_usize;
        visit(&mut |_, _| count += 1)?;
        let excess = count.saturating_sub(keep);
        if excess == 0 {
            return Ok(Vec::new());
        }
        let mut rows = Vec::with_capacity(count);
        visit(&mut |key, revision| rows.push((revision, Key::decode(key))))?;
        let rows = rows.into_iter().map(|(revision, key)| Some((revision, key?)));
        let rows: Option<Vec<(u64, Key)>> = rows.collect();
        let rows = self.note(rows.ok_or_else(|| damaged("an object without a name")))?;
        Ok(fairest(rows, excess, subject))
    }

    /// Creates or replaces the object, and returns its new revision. A value above
    /// [`MAX_VALUE_BYTES`], or a key above 4096 bytes, fails the whole write.
    pub fn put(&mut self, key: Key, value: Vec<u8>) -> u64 {
        let name = key.resource.len() + key.namespace.len() + key.name.len();
        if value.len() > MAX_VALUE_BYTES || name > MAX_KEY_BYTES {
            let (bytes, limit) = match name > MAX_KEY_BYTES {
                true => (name, MAX_KEY_BYTES),
                false => (value.len(), MAX_VALUE_BYTES),
            };
            self.fail(Error::ValueTooLarge { key: key.clone(), bytes, limit });
            return self.next;
        }
        // `get` records a failed read, which fails the write; the change made here is then dropped.
        let previous = self.get(&key).unwrap_or(None);
        let value: Arc<[u8]> = value.into();
        let stored = Stored { revision: self.next, value: value.clone() };
        self.record(key, Some(stored), ChangeKind::Put { value, previous })
    }

    /// Deletes the object. Returns the revision of the deletion, or `None` if the object does not
    /// exist.
    pub fn delete(&mut self, key: &Key) -> Result<Option<u64>, Error> {
        match self.get(key)? {
            Some(previous) => {
                Ok(Some(self.record(key.clone(), None, ChangeKind::Delete { previous })))
            }
            None => Ok(None),
        }
    }

    /// Returns true if this closure has changed an object of `resource`.
    pub fn changes(&self, resource: &str) -> bool {
        self.overlay.keys().any(|key| key.resource == resource)
    }

    /// Returns every object, without this closure's own changes.
    pub(crate) fn everything(&self) -> Result<Vec<(Key, Stored)>, Error> {
        self.note(self.base.everything())
    }

    /// Forces a commit even without changes.
    pub(crate) fn touch(&mut self) {
        self.touched = true;
    }

    /// Sets the maximum size of this closure's changes, in bytes.
    pub(crate) fn allow(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Sets the store's revision to `revision` if it is higher than the current one. Must be called
    /// before the first change.
    pub(crate) fn leap(&mut self, revision: u64) {
        if revision >= self.next {
            self.next = revision + 1;
            self.leap = Some(revision);
        }
    }

    /// Returns the changes to commit, or the first failure.
    pub(crate) fn finish(self) -> Result<CommitSet, Error> {
        match self.failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(CommitSet { changes: self.changes, leap: self.leap, touched: self.touched }),
        }
    }

    fn record(&mut self, key: Key, row: Option<Stored>, kind: ChangeKind) -> u64 {
        let revision = self.next;
        let change = Change { revision, key: key.clone(), kind };
        self.bytes += change.weight();
        if self.bytes > self.limit {
            self.fail(Error::TxnTooLarge { key, limit: self.limit });
            return revision;
        }
        self.changes.push(change);
        self.overlay.insert(key, row);
        self.next += 1;
        revision
    }

    fn note<T>(&self, read: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &read {
            self.failed.borrow_mut().get_or_insert_with(|| error.clone());
        }
        read
    }

    fn fail(&self, error: Error) {
        self.failed.borrow_mut().get_or_insert(error);
    }
}

/// Selects `excess` rows: repeatedly the oldest row of the subject with the most rows.
fn fairest(mut rows: Vec<(u64, Key)>, excess: usize, subject: impl Fn(&str) -> &str) -> Vec<Key> {
    rows.sort_unstable_by_key(|(revision, _)| Reverse(*revision));
    let mut subjects: HashMap<String, Vec<(u64, Key)>> = HashMap::new();
    for row in rows {
        subjects.entry(subject(&row.1.name).to_owned()).or_default().push(row);
    }
    // Among subjects with equally many rows, the one with the oldest row comes first.
    let rank = |rows: &Vec<(u64, Key)>| (rows.len(), rows.last().map(|(at, _)| Reverse(*at)));
    let mut subjects: BinaryHeap<_> =
        subjects.into_values().map(|rows| (rank(&rows), rows)).collect();
    let mut gone = Vec::with_capacity(excess);
    while gone.len() < excess
        && let Some((_, mut rows)) = subjects.pop()
    {
        gone.extend(rows.pop().map(|(_, key)| key));
        if !rows.is_empty() {
            subjects.push((rank(&rows), rows));
        }
    }
    gone
}
