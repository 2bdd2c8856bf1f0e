//! Errors of consoles and of their SSH server.

use std::io;

/// Error of a console or of the SSH server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No machine with a serial console has the name.
    #[error("machine {name:?} has no serial console")]
    Unknown {
        /// Name of the Hardware.
        name: String,
    },
    /// The SSH host key cannot be read or stored.
    #[error("cannot read or store the SSH host key in {folder}")]
    HostKeyFile {
        /// Folder of the host key.
        folder: String,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// The SSH host key is not valid.
    #[error("the SSH host key in {folder} is not valid; delete the file for a new key")]
    HostKey {
        /// Folder of the host key.
        folder: String,
        /// Error of the key format.
        #[source]
        source: russh::keys::Error,
    },
}

/// Reason why the serial console of a machine cannot be opened now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenError {
    /// Reason as a sentence, for people.
    pub message: String,
    /// True if another attempt soon may succeed.
    pub is_transient: bool,
}
