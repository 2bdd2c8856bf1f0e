//! Consistency check of the store: compares the objects with the end states of the log.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use redb::{Database, ReadTransaction, ReadableDatabase as _, ReadableTable as _};

use crate::error::{damaged, storage};
use crate::tables::{
    CHANGELOG, META_FLOOR, META_LOG_BYTES, META_REVISION, OBJECTS, decode_change, decode_object,
    meta,
};
use crate::vault::Vault;
use crate::{Error, Key, Store, Stored};

/// Result of [`Store::check`] for a consistent store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckReport {
    /// Last revision of the store.
    pub revision: u64,
    /// Last revision that was removed from the log; the log has every revision above it.
    pub floor: u64,
    /// Number of objects in the store.
    pub objects: u64,
}

/// Revision of an object and a hash of its value: enough to compare two states, in little memory.
type Mark = (u64, u64);

struct Check<'a> {
    vault: &'a Vault,
    txn: &'a ReadTransaction,
    hasher: RandomState,
    revision: u64,
    floor: u64,
    /// Last state of each changed object in the log; `None` after a deletion.
    ends: HashMap<Key, Option<Mark>>,
}

impl Store {
    /// Reads the whole store and compares log and objects. Used after a repair and in tests.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the first mistake, a failed decryption, or the disk fails.
    pub fn check(&self) -> Result<CheckReport, Error> {
        check(&self.shared().db, &self.shared().vault)
    }
}

/// Checks a database as [`Store::check`] does, before it is an open store.
pub(crate) fn check(db: &Database, vault: &Vault) -> Result<CheckReport, Error> {
    let txn = db.begin_read().map_err(storage("check"))?;
    let mut check = Check {
        hasher: RandomState::new(),
        revision: meta(&txn, META_REVISION)?,
        floor: meta(&txn, META_FLOOR)?,
        ends: HashMap::new(),
        vault,
        txn: &txn,
    };
    check.replay()?;
    let objects = check.compare()?;
    Ok(CheckReport { revision: check.revision, floor: check.floor, objects })
}

impl Check<'_> {
    fn mark(&self, stored: &Stored) -> Mark {
        (stored.revision, self.hasher.hash_one(&stored.value))
    }

    /// Checks the log: no gaps, and each change starts from the last state of its object.
    fn replay(&mut self) -> Result<(), Error> {
        let log = self.txn.open_table(CHANGELOG).map_err(storage("check"))?;
        let mut at = self.floor;
        let mut bytes = 0;
        for row in log.iter().map_err(storage("check"))? {
            let (revision, row) = row.map_err(storage("check"))?;
            let change = decode_change(revision.value(), row.value(), self.vault)?;
            if change.revision != at + 1 {
                return Err(damaged(format!("revision {} follows revision {at}", change.revision)));
            }
            at = change.revision;
            bytes += row.value().len() as u64;
            let previous = change.previous().map(|previous| self.mark(previous));
            let current = change.current().map(|current| self.mark(&current));
            let plausible = match self.ends.insert(change.key.clone(), current) {
                Some(end) => end == previous,
                None => previous.is_none_or(|(revision, _)| revision <= self.floor),
            };
            if !plausible {
                return Err(damaged(format!(
                    "revision {at} of {} does not continue the earlier state",
                    change.key
                )));
            }
        }
        if at != self.revision || bytes != meta(self.txn, META_LOG_BYTES)? {
            return Err(damaged(format!("the log ends at {at} with {bytes} bytes")));
        }
        Ok(())
    }

    /// Compares the objects with their last states in the log. Returns the number of objects.
    fn compare(&self) -> Result<u64, Error> {
        let table = self.txn.open_table(OBJECTS).map_err(storage("check"))?;
        let (mut objects, mut logged) = (0, 0);
        for row in table.iter().map_err(storage("check"))? {
            let (key, value) = row.map_err(storage("check"))?;
            let key =
                Key::decode(key.value()).ok_or_else(|| damaged("an object without a name"))?;
            let stored = decode_object(&key, value.value(), self.vault)?;
            let agrees = match self.ends.get(&key) {
                Some(end) => *end == Some(self.mark(&stored)),
                None => stored.revision <= self.floor,
            };
            if !agrees {
                return Err(damaged(format!("{key} differs from the log")));
            }
            objects += 1;
            logged += usize::from(self.ends.contains_key(&key));
        }
        match logged == self.ends.values().filter(|end| end.is_some()).count() {
            true => Ok(objects),
            false => Err(damaged("an object of the log is missing")),
        }
    }
}
