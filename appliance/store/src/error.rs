//! Errors of the store.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Key;

/// An error of the store. Cheap to clone: one failed commit answers many callers.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The file or its folder could not be made ready.
    #[error("cannot {attempt} {}", path.display())]
    File {
        /// Operation that failed, as a verb.
        attempt: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The file was written by a later release.
    #[error(
        "cannot open the store {}: it has format {found}, this release supports formats up to \
        {known}",
        path.display()
    )]
    FutureFormat {
        /// Path of the file.
        path: PathBuf,
        /// The version in the file.
        found: u64,
        /// The newest version this code reads.
        known: u64,
    },
    /// Another process has the file open.
    #[error("cannot open the store {}: another process has it open", path.display())]
    InUse {
        /// Path of the file.
        path: PathBuf,
    },
    /// The disk, or the database on it, failed.
    #[error("cannot {attempt} the store")]
    Storage {
        /// Operation that failed, as a verb.
        attempt: &'static str,
        /// Error of the database.
        #[source]
        source: Arc<redb::Error>,
    },
    /// The data on disk is inconsistent.
    #[error("the store is damaged: {what}")]
    Damaged {
        /// Description of the inconsistency.
        what: String,
    },
    /// The store is to be brought to a newer format, and a copy of it does not fit on the disk.
    #[error(
        "cannot convert the store {} to this release's format: {needed} bytes are needed, {free} \
         are free on its disk",
        path.display()
    )]
    NoRoom {
        /// Path of the file.
        path: PathBuf,
        /// Bytes of a copy, and some more.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// An earlier commit failed; nothing more is written until the store is opened again.
    #[error("the store refuses writes after a failed commit; open it again")]
    Refusing {
        /// The failure that began it.
        #[source]
        cause: Arc<Error>,
    },
    /// One value is larger than [`crate::MAX_VALUE_BYTES`].
    #[error("cannot store {key}: {bytes} bytes, the limit is {limit}")]
    ValueTooLarge {
        /// Key of the object.
        key: Key,
        /// Size of the value in bytes.
        bytes: usize,
        /// Limit of the size in bytes.
        limit: usize,
    },
    /// One write closure changed more than [`crate::MAX_TXN_BYTES`].
    #[error("cannot store {key}: the transaction exceeds {limit} bytes")]
    TxnTooLarge {
        /// The object that went over it.
        key: Key,
        /// Limit of the size in bytes.
        limit: usize,
    },
    /// A sealed value could not be opened or made: another key, or changed bytes.
    #[error("cannot open the sealed value of {key}: it was sealed with another key, or changed")]
    Unsealable {
        /// Key of the object.
        key: Key,
    },
    /// The store was sealed with a key that is not the one given.
    #[error("cannot open the store {}: its secrets are sealed with another key", path.display())]
    WrongKey {
        /// Path of the file.
        path: PathBuf,
    },
    /// A write closure panicked; nothing of it was kept.
    #[error("a write was dropped because its closure panicked: {message}")]
    Panicked {
        /// Message of the panic.
        message: String,
    },
    /// The log no longer reaches back to the requested revision: list again.
    #[error("cannot watch after revision {after}: the log begins after revision {floor}")]
    Compacted {
        /// Revision that was requested.
        after: u64,
        /// The oldest revision that can be watched after.
        floor: u64,
    },
    /// The requested revision has not happened here (an older backup was restored): list again.
    #[error("cannot watch after revision {after}: the store is at revision {current}")]
    Future {
        /// Revision that was requested.
        after: u64,
        /// Current revision of the store.
        current: u64,
    },
    /// The watch fell so far behind that the log was compacted past it: list again.
    #[error("the watch is too slow: it is at revision {at}, the log begins after {floor}")]
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
