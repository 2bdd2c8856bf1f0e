//! Errors of backups and restores.

use std::io;

use stdx::Hint;

/// Reason why a backup or a restore was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Another backup or restore is under way: only one runs at a time.
    #[error("another backup or restore is under way")]
    Busy,
    /// A backup was restored, and the box has not restarted yet.
    #[error("a backup was restored, and this box is about to restart")]
    Restarting,
    /// The request has no key option, or more than one.
    #[error("choose one: a passphrase, public keys, or an unencrypted backup")]
    Request,
    /// The backup file or its key is not valid.
    #[error(transparent)]
    Backup(::backup::Error),
    /// A plain backup has neither keys nor secrets, so no box can be restored from it.
    #[error("an unencrypted backup has neither keys nor secrets: no box can be restored from it")]
    Plain,
    /// The backup has a file that does not belong to a box, or lacks a required file.
    #[error("cannot restore this backup: {0}")]
    Unfit(String),
    /// The box runs as a guest on another system, and has no folder for daily backups.
    #[error("this Tinbox runs as a program on a host system and has no folder for backups")]
    Nowhere,
    /// The store is lost, so a backup would not contain the data of this box.
    #[error("the stored data of this box cannot be read: restore a backup first")]
    Lost,
    /// The box has no stored backup with this name.
    #[error("the box has no backup {0:?}")]
    NoSuch(String),
    /// A file operation failed.
    #[error("cannot {attempt}")]
    Disk {
        /// Operation that failed, as a phrase.
        attempt: &'static str,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The store cannot be read or written.
    #[error("cannot read or create the store")]
    Store(#[from] store::Error),
    /// The leases cannot be read or written.
    #[error("cannot read or write the leases")]
    Leases(#[from] dhcp::Error),
    /// The task of the backup stopped unexpectedly.
    #[error("the backup task stopped unexpectedly")]
    Ended,
}

impl Hint for BackupError {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Busy => Some("wait until the other backup or restore has ended"),
            Self::Restarting => Some("try again after the restart"),
            Self::Backup(error) => error.hint(),
            Self::Plain => Some("restore an encrypted backup"),
            Self::Unfit(_) => Some("make a new backup on the box that this backup is from"),
            Self::Nowhere => Some("make a backup with `tinbox backup create`"),
            Self::NoSuch(_) => Some("`tinbox backup list` shows the backups that the box keeps"),
            Self::Request
            | Self::Lost
            | Self::Disk { .. }
            | Self::Store(_)
            | Self::Leases(_)
            | Self::Ended => None,
        }
    }
}

impl From<::backup::Error> for BackupError {
    fn from(error: ::backup::Error) -> Self {
        Self::Backup(error)
    }
}

pub(super) fn disk(attempt: &'static str) -> impl FnOnce(io::Error) -> BackupError {
    move |source| BackupError::Disk { attempt, source }
}
