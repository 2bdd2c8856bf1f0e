//! Errors of the cache.

use std::io;
use std::path::PathBuf;

/// A file could not be fetched or stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the cache cannot be read or written.
    #[error("cannot use the artifact {}", path.display())]
    Artifact {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file of another server did not come.
    #[error("could not fetch {url}: {reason}")]
    Fetch {
        /// Where it should be, without what may be a secret.
        url: String,
        /// Why.
        reason: String,
        /// It may come another time.
        passing: bool,
    },
    /// A file of another server is not what was expected.
    #[error("{url} is {got}, which is not what was expected")]
    Checksum {
        /// Where it came from, without what may be a secret.
        url: String,
        /// What it is.
        got: String,
    },
    /// Nothing that may go would make room for a new file.
    #[error(
        "the cache has no room for {} more; the largest in it: {largest}", stdx::bytes(*incoming)
    )]
    CacheFull {
        /// Bytes of the new file, as far as known.
        incoming: u64,
        /// The five largest files and their sizes.
        largest: String,
    },
}

impl Error {
    /// Whether trying again some seconds later may help, without anybody doing something.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Fetch { passing: true, .. })
    }
}
