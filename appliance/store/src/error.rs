//! What can go wrong, in words.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Key;

/// Why the store could not do what was asked. Cheap to clone: one failed commit answers many.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The file or its folder could not be made ready.
    #[error("cannot {attempt} {}", path.display())]
    File {
        /// What was being done.
        attempt: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The file was written by a later release.
    #[error(
        "cannot open the store {}: it has format {found}, this release knows formats up to {known}",
        path.display()
    )]
    FutureFormat {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u64,
        /// The newest version this code reads.
        known: u64,
    },
    /// Another process has the file open.
    #[error("cannot open the store {}: another process has it open", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The disk, or the database on it, failed.
    #[error("cannot {attempt} the store")]
    Storage {
        /// What was being done.
        attempt: &'static str,
        /// The database's word.
        #[source]
        source: Arc<redb::Error>,
    },
    /// What is on disk contradicts itself.
    #[error("the store is damaged: {what}")]
    Damaged {
        /// What was found.
        what: String,
    },
    /// The store is to be brought to a newer format, and a copy of it does not fit on the disk.
    #[error(
        "cannot bring the store {} to this release's format: that takes {needed} bytes, {free} are \
         free on its disk",
        path.display()
    )]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Bytes of a copy, and some more.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// An earlier commit failed; nothing more is written until the store is opened again.
    #[error("the store refuses writes since a commit failed; open it again to go on")]
    Refusing {
        /// The failure that began it.
        #[source]
        cause: Arc<Error>,
    },
    /// One value is larger than [`crate::MAX_VALUE_BYTES`].
    #[error("cannot store {key}: {bytes} bytes, the limit is {limit}")]
    ValueTooLarge {
        /// The object.
        key: Key,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// One write closure changed more than [`crate::MAX_TXN_BYTES`].
    #[error("cannot store {key}: the transaction exceeds {limit} bytes")]
    TxnTooLarge {
        /// The object that went over it.
        key: Key,
        /// The limit.
        limit: usize,
    },
    /// A sealed value could not be opened or made: another key, or changed bytes.
    #[error("cannot open the sealed value of {key}: it was sealed with another key, or changed")]
    Unsealable {
        /// The object.
        key: Key,
    },
    /// The store was sealed with a key that is not the one given.
    #[error("cannot open the store {}: its secrets are sealed with another key", path.display())]
    WrongKey {
        /// The file.
        path: PathBuf,
    },
    /// A write closure panicked; nothing of it was kept.
    #[error("a write was dropped because its closure panicked: {message}")]
    Panicked {
        /// What the panic said.
        message: String,
    },
    /// The log no longer reaches back to the revision asked for: list again.
    #[error("cannot watch after revision {after}: the log begins after revision {floor}")]
    Compacted {
        /// The revision asked for.
        after: u64,
        /// The oldest revision that can be watched after.
        floor: u64,
    },
    /// The revision asked for has not happened here (an older backup was restored): list again.
    #[error("cannot watch after revision {after}: the store is at revision {current}")]
    Future {
        /// The revision asked for.
        after: u64,
        /// The store's revision.
        current: u64,
    },
    /// The watch fell so far behind that the log was compacted past it: list again.
    #[error("the watch fell behind: it stands at revision {at}, the log begins after {floor}")]
    Lagged {
        /// The last revision this watch has seen.
        at: u64,
        /// The oldest revision that can be watched after.
        floor: u64,
    },
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

/// Wraps any error of the database with what was being done.
pub(crate) fn storage<E: Into<redb::Error>>(attempt: &'static str) -> impl FnOnce(E) -> Error {
    move |source| Error::Storage { attempt, source: Arc::new(source.into()) }
}

/// Contradictory bytes on disk.
pub(crate) fn damaged(what: impl Into<String>) -> Error {
    Error::Damaged { what: what.into() }
}
