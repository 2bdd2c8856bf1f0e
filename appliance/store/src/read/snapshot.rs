//! Snapshots of the running store, and their restore.
//!
//! A snapshot is a store file of the same format; encrypted values stay encrypted. A restore writes
//! the differences in one transaction: after a power cut, either all of them or none are present.
//! The revision first jumps by [`RESTORE_LEAP`], so that every watch must list again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use redb::{
    ReadTransaction, ReadableDatabase as _, ReadableTable as _, TableDefinition, WriteTransaction,
};

use super::check::check;
use crate::error::storage;
use crate::file::file_error;
use crate::file::open::{existing, fresh_database, settle, unfinished};
use crate::shared::Shared;
use crate::tables::{CHANGELOG, META, META_REVISION, OBJECTS, Objects as _, Opened, meta};
use crate::transaction::begin;
use crate::{Error, Key, Store, Stored};

/// Number of revisions that a restore skips after the snapshot's last revision. Changes after the
/// snapshot also used revisions, which must not be reused. A thousand writes a second use as many
/// revisions in 49 days.
pub const RESTORE_LEAP: u64 = 1 << 32;

/// Maximum size of the changes of a restore in bytes, including names and replaced values.
const MAX_RESTORE_BYTES: usize = 256 * 1024 * 1024;

impl Store {
    /// Copies the current state of the store to the file `path`, durable on return; replaces an
    /// existing file. Blocks, but not writers and readers. Returns the snapshot's revision.
    ///
    /// # Errors
    /// The disk fails.
    pub fn snapshot(&self, path: &Path) -> Result<u64, Error> {
        let shared = self.shared();
        let _alone = shared.copying.lock().unwrap_or_else(PoisonError::into_inner);
        let from = shared.db.begin_read().map_err(storage("copy"))?;
        let revision = meta(&from, META_REVISION)?;
        let fresh = unfinished(path)?;
        let db = fresh_database(&fresh)?;
        let to = begin(&db)?;
        copy(&from, &to, OBJECTS)?;
        copy(&from, &to, CHANGELOG)?;
        copy(&from, &to, META)?;
        to.commit().map_err(storage("copy"))?;
        drop(db);
        settle(&fresh, path)?;
        Ok(revision)
    }

    /// Replaces all objects by the objects of the snapshot file `path`; deletes objects that are
    /// not in the snapshot. Returns the revision of the last change.
    ///
    /// # Errors
    /// [`Error::WrongKey`] if another key encrypted the snapshot, [`Error::FutureFormat`] if a
    /// later release made it, [`Error::Damaged`], or the disk fails. The store is then unchanged.
    pub async fn restore(&self, path: &Path) -> Result<u64, Error> {
        let (store, path) = (self.clone(), path.to_owned());
        let read = tokio::task::spawn_blocking(move || store.read_snapshot(&path));
        let (revision, objects) = read.await.map_err(|_| Error::Closed)??;
        let write = self.write(move |txn| {
            txn.allow(MAX_RESTORE_BYTES);
            let current = txn.everything()?;
            txn.leap(revision.saturating_add(RESTORE_LEAP));
            let kept: BTreeSet<&Key> = objects.iter().map(|(key, _)| key).collect();
            for (key, _) in current.iter().filter(|(key, _)| !kept.contains(key)) {
                txn.delete(key)?;
            }
            for (key, stored) in objects {
                let same = txn.get(&key)?.is_some_and(|now| now.value == stored.value);
                if !same {
                    txn.put(key, stored.value.to_vec());
                }
            }
            Ok::<(), Error>(())
        });
        write.await??;
        Ok(self.revision())
    }

    /// Returns revision and objects of a snapshot. Opens a copy of the snapshot as a store, which
    /// checks it and migrates it from an earlier format.
    fn read_snapshot(&self, path: &Path) -> Result<(u64, Vec<(Key, Stored)>), Error> {
        let Shared { path: own, vault, copying, .. } = self.shared();
        let _alone = copying.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = Scratch(own.with_extension("restoring"));
        std::fs::copy(path, &scratch.0).map_err(file_error("copy the snapshot", path))?;
        // Errors must name the file that the caller passed.
        let with_path = |error| match error {
            Error::WrongKey { .. } => Error::WrongKey { path: path.to_owned() },
            Error::FutureFormat { found, known, .. } => {
                Error::FutureFormat { path: path.to_owned(), found, known }
            }
            other => other,
        };
        let (db, totals) = existing(&scratch.0, vault).map_err(with_path)?;
        check(&db, vault)?;
        let txn = db.begin_read().map_err(storage("read the snapshot of"))?;
        let table = txn.open_table(OBJECTS).map_err(storage("read the snapshot of"))?;
        Ok((totals.revision, Opened { table: &table, vault }.everything()?))
    }
}

/// Temporary file, removed on drop. After a power cut, the next restore overwrites the leftover.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            let file = self.0.display();
            tracing::warn!(%file, %error, "cannot remove the copy of a snapshot");
        }
    }
}

/// Copies a table row by row; encrypted values stay encrypted.
fn copy<K: redb::Key + 'static, V: redb::Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<(), Error> {
    let source = from.open_table(table).map_err(storage("copy"))?;
    let mut copy = to.open_table(table).map_err(storage("copy"))?;
    for row in source.iter().map_err(storage("copy"))? {
        let (key, value) = row.map_err(storage("copy"))?;
        copy.insert(key.value(), value.value()).map_err(storage("copy"))?;
    }
    Ok(())
}
