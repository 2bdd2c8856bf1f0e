//! Errors of keys.

use std::io;
use std::path::PathBuf;

/// A key could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A text that should be a public key.
    #[error("line {line} is no minisign public key: {why}")]
    PublicKey {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file that should hold a key for signing.
    #[error("{} is no minisign key that can sign here: {why}", path.display())]
    SecretKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file of a key cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file of a key cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}
