//! Errors of reading and writing keys.

use std::io;
use std::path::PathBuf;

/// Error of reading or writing a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line is not a valid public key.
    #[error("line {line} is not a valid minisign public key: {why}")]
    PublicKey {
        /// Number of the line, counted from 1.
        line: usize,
        /// Reason, as a phrase.
        why: &'static str,
    },
    /// A file does not contain a usable signing key.
    #[error("{} is not a usable minisign secret key: {why}", path.display())]
    SecretKey {
        /// Path of the key file.
        path: PathBuf,
        /// Reason, as a phrase.
        why: &'static str,
    },
    /// The file of a key cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the key file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file of a key cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Path of the key file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
}
