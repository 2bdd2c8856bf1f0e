//! Errors of writing and reading backups, worded for people.

use std::io;

use stdx::Hint;

use crate::{ARCHIVE_BYTES_MAX, ENTRIES_MAX, PASSPHRASE_BYTES_MAX, PASSPHRASE_CHARS_MIN};

/// Error of writing or reading a backup.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file does not begin with the first line of a backup.
    #[error("not a valid backup of a Tinbox")]
    NotOne,
    /// The backup was made by a later release.
    #[error("this backup needs Tinbox {needs} or newer, but this is {own}")]
    Newer {
        /// Oldest release that reads the backup.
        needs: String,
        /// Version of this release.
        own: String,
    },
    /// The passphrase does not open the backup.
    #[error("wrong passphrase for this backup")]
    WrongPassphrase,
    /// The key does not open the backup.
    #[error("wrong key for this backup: it was made for {recipients}")]
    WrongIdentity {
        /// Public keys that the backup is encrypted for.
        recipients: String,
    },
    /// The supplied secret has the wrong kind, or is missing.
    #[error("this backup can be decrypted only with {with}")]
    KeyNeeded {
        /// Secret that the backup needs.
        with: &'static str,
    },
    /// The file is shorter than the size in its header.
    #[error("this backup is truncated")]
    Truncated,
    /// The content of the file was changed.
    #[error("this backup is damaged: {what}")]
    Damaged {
        /// Description of the damage.
        what: String,
    },
    /// A part exceeds a limit of the reader.
    #[error("this backup is too large: the limit is {limit}")]
    TooLarge {
        /// Name of the limit.
        limit: String,
    },
    /// Decryption would take more memory than the reader allows.
    #[error("this backup has the scrypt work factor {found}; the limit of a box is {known}")]
    TooCostly {
        /// Base-2 logarithm of scrypt's N, from the file.
        found: u8,
        /// Maximum value that the reader accepts.
        known: u8,
    },
    /// The passphrase is too short or too long.
    #[error(
        "a passphrase must have at least {PASSPHRASE_CHARS_MIN} characters and at most \
         {PASSPHRASE_BYTES_MAX} bytes"
    )]
    Passphrase,
    /// The passphrase for a new backup is a secret key of age.
    #[error("a secret key of age cannot be the passphrase of a backup")]
    SecretKey,
    /// The text is not a public key.
    #[error("expected a public key of age such as age1…, found {text:?}")]
    Recipient {
        /// Text that was supplied as the key.
        text: String,
    },
    /// A part cannot be stored in a backup.
    #[error("cannot store {what} in a backup: {why}")]
    Unkept {
        /// Name of the part.
        what: String,
        /// Reason, as a phrase.
        why: String,
    },
    /// The file or stream of the backup failed.
    #[error("cannot {attempt} the backup")]
    Io {
        /// Operation that failed, as a verb.
        attempt: &'static str,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl Hint for Error {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::NotOne => {
                "`tinbox backup create` makes a backup, which begins with TINBOX BACKUP"
            }
            Self::Newer { .. } => "update this box first (`tinbox update apply`), then try again",
            Self::WrongPassphrase => {
                "use the passphrase that was set when the backup was made, not the passphrase of \
                 the owner"
            }
            Self::WrongIdentity { .. } => "give the secret key of one of these public keys",
            Self::KeyNeeded { .. } => "give this passphrase or secret key with --passphrase-file",
            Self::Truncated | Self::Damaged { .. } => "copy the backup again from the original",
            Self::TooCostly { .. } => {
                "decrypt the backup with age on a machine with more memory, and encrypt it again"
            }
            Self::SecretKey => "encrypt for its public key, which `age-keygen -y FILE` shows",
            Self::Recipient { .. } => "`age-keygen -y FILE` shows the public key of a secret key",
            Self::TooLarge { .. } | Self::Passphrase | Self::Unkept { .. } | Self::Io { .. } => {
                return None;
            }
        })
    }
}

impl Error {
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Error::Damaged { what: what.into() }
    }

    pub(crate) fn too_many_entries() -> Self {
        Error::TooLarge { limit: format!("{ENTRIES_MAX} entries") }
    }

    pub(crate) fn archive_too_large() -> Self {
        Error::TooLarge { limit: format!("{} unpacked", stdx::bytes(ARCHIVE_BYTES_MAX)) }
    }

    /// Converts an error of reading. An error of this crate that a lower layer passed through `io`
    /// is unwrapped.
    pub(crate) fn read(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::Truncated,
            _ => match error.downcast::<Error>() {
                Ok(own) => own,
                // The decompressor reports damaged input with these kinds.
                Err(error) if is_about_bytes(&error) => Error::damaged(error.to_string()),
                Err(source) => Error::Io { attempt: "read", source },
            },
        }
    }

    pub(crate) fn write(source: io::Error) -> Self {
        match source.downcast::<Error>() {
            Ok(own) => own,
            Err(source) => Error::Io { attempt: "write", source },
        }
    }
}

fn is_about_bytes(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::other(error)
    }
}
