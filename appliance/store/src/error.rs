//! Errors of the store.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Key;

/// Error of the store. Cheap to clone, because every caller of a failed commit gets a copy.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// An operation on the store's file or its folder failed.
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
        /// Format version of the file.
        found: u64,
        /// Newest format version that this release reads.
        known: u64,
    },
    /// Another process has the file open.
    #[error("cannot open the store {}: another process has it open", path.display())]
    InUse {
        /// Path of the file.
        path: PathBuf,
    },
    /// The disk failed, or redb reported an error.
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
    /// The store needs a migration to a newer format, but the disk has no space for a copy.
    #[error(
        "cannot convert the store {} to this release's format: {needed} bytes are needed, {free} \
         are free on its disk",
        path.display()
    )]
    NoRoom {
        /// Path of the file.
        path: PathBuf,
        /// Bytes of a copy of the store, and a margin of 16 MiB.
        needed: u64,
        /// Free bytes of the disk.
        free: u64,
    },
    /// An earlier commit failed. The store refuses writes until it is opened again.
    #[error("the store refuses writes after a failed commit; open it again")]
    Refusing {
        /// Error of the failed commit.
        #[source]
        cause: Arc<Error>,
    },
    /// A value is larger than [`crate::MAX_VALUE_BYTES`], or a key is longer than 4096 bytes.
    #[error("cannot store {key}: {bytes} bytes, the limit is {limit}")]
    ValueTooLarge {
        /// Key of the object.
        key: Key,
        /// Size of the value or the key in bytes.
        bytes: usize,
        /// Limit of the size in bytes.
        limit: usize,
    },
    /// The changes of a write closure exceed [`crate::MAX_TXN_BYTES`].
    #[error("cannot store {key}: the transaction exceeds {limit} bytes")]
    TxnTooLarge {
        /// Key of the object whose change exceeded the limit.
        key: Key,
        /// Limit of the size in bytes.
        limit: usize,
    },
    /// An encrypted value cannot be decrypted (other key, or changed bytes), or encryption failed.
    #[error("cannot open the sealed value of {key}: it was sealed with another key, or changed")]
    Unsealable {
        /// Key of the object.
        key: Key,
    },
    /// The values of the store are encrypted with another key than the given key, if any.
    #[error("cannot open the store {}: its secrets are sealed with another key", path.display())]
    WrongKey {
        /// Path of the file.
        path: PathBuf,
    },
    /// A write closure panicked; none of its changes were stored.
    #[error("the store discarded a write, because the code of the write panicked: {message}")]
    Panicked {
        /// Message of the panic.
        message: String,
    },
    /// The log does not have the requested revision any more; the client must list again.
    #[error("cannot watch after revision {after}: the log begins after revision {floor}")]
    Compacted {
        /// Revision that was requested.
        after: u64,
        /// Oldest revision that a watch can start after.
        floor: u64,
    },
    /// The requested revision is above the store's (an older backup was restored): list again.
    #[error("cannot watch after revision {after}: the store is at revision {current}")]
    Future {
        /// Revision that was requested.
        after: u64,
        /// Current revision of the store.
        current: u64,
    },
    /// The log no longer contains the changes that a slow watch needs; the client must list again.
    #[error(
        "the watch is too slow: it is at revision {at}, the log begins after revision {floor}; \
         list again"
    )]
    Lagged {
        /// Last revision that the watch has read.
        at: u64,
        /// Oldest revision that a watch can start after.
        floor: u64,
    },
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

/// Returns a function that converts a redb error; `attempt` is the failed operation, as a verb.
pub(crate) fn storage<E: Into<redb::Error>>(attempt: &'static str) -> impl FnOnce(E) -> Error {
    move |source| Error::Storage { attempt, source: Arc::new(source.into()) }
}

/// Returns the error of inconsistent data on disk.
pub(crate) fn damaged(what: impl Into<String>) -> Error {
    Error::Damaged { what: what.into() }
}
