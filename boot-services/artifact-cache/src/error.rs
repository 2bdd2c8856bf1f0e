//! Errors of the cache.

use std::io;
use std::path::PathBuf;

/// Failure to download or to store a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the cache cannot be read or written.
    #[error("cannot use the artifact {}", path.display())]
    Artifact {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// The download of a file failed.
    #[error("could not fetch {url}: {reason}")]
    Fetch {
        /// URL of the file, without the user and the query, which may be secrets.
        url: String,
        /// Reason, as a clause for the message.
        reason: String,
        /// True if a later attempt may succeed without a change by a person.
        passing: bool,
    },
    /// The downloaded file does not match its checksum.
    #[error("{url} has the checksum {got}, which is not the expected checksum")]
    Checksum {
        /// URL of the file, without the user and the query, which may be secrets.
        url: String,
        /// Digest of the received content.
        got: String,
    },
    /// The cache has no space for a new file, even after evicting all files that may go.
    #[error(
        "the cache has no space for {} more; the largest files: {largest}", stdx::bytes(*incoming)
    )]
    CacheFull {
        /// Bytes of the new file, as far as known.
        incoming: u64,
        /// The five largest files and their sizes, for the message.
        largest: String,
    },
}

impl Error {
    /// Returns true if a retry after some seconds may succeed, without a change by a person.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Fetch { passing: true, .. })
    }
}
