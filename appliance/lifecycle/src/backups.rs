//! Making, verifying and restoring backups of this box (BK-1, BK-3, HA-1). A backup is one file in
//! the format of crate `backup`. It has one snapshot of the store, the keys, the leases and the
//! settings.
//!
//! Never: a secret in a file that other users can open, a passphrase in a log. Never a restored
//! file in its final place before all restored files are on disk (`place`).

mod daily;
mod error;
mod gather;
mod handlers;
mod leases;
mod place;
mod spool;
mod stage;

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::backup::{FILE_BYTES_MAX, Key, Lock, Reader};
use axum::body::Bytes;
use config::{Config, SystemKind};
use durable_file::replace_private;
use platform::init::{self, Leave};
use status::backup::{BackupRequest, BackupSummary, LastBackup, StoredBackup};
use status::source::{Filling, StatusSource};
use status::view::StatusView;
use stdx::{Clock, Secret};
use store::Store;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

pub use error::BackupError;
use error::disk;
pub use handlers::router;
pub use place::{resume, unrestored};
use provisioning::images::Images;
use provisioning::networks::leases::OpenLeases;
pub use spool::BackupFile;

/// Maximum number of uploaded pieces that wait for the disk.
pub const PIECES: usize = 4;
/// File in the state folder with the time and size of the last downloaded backup.
const LAST: &str = "backup.json";
/// Wait before the restart that follows a restore, so that the HTTP response reaches the client.
const ANSWER_GRACE: Duration = Duration::from_secs(1);

/// Backups of this box, and the sources of their data.
pub struct Backups {
    /// Store with the objects to back up.
    pub store: Store,
    /// Folder of the box's state files.
    pub state: PathBuf,
    /// Folder for the daily backups, on another volume than the state; `None` on a guest.
    pub kept_in: Option<PathBuf>,
    /// True if the store is lost, so that a backup is impossible.
    pub is_lost: bool,
    /// Path of `box.toml`; the file may be absent.
    pub settings: PathBuf,
    /// Firmware or guest. Only firmware may write `box.toml`.
    pub system_kind: SystemKind,
    /// Name of the box, for the header of a backup.
    pub name: String,
    /// Certificate pin of the box, for the header of a backup.
    pub pin: String,
    /// Configuration of the box.
    pub config: Arc<Config>,
    /// Clock for the times of backups.
    pub clock: Arc<dyn Clock>,
    /// Image cache. A backup holds its list of files, not the files.
    pub images: Images,
    /// Lease files that DHCP has open.
    pub leases: OpenLeases,
    /// State of the running backup or restore.
    pub now: BackupProgress,
}

/// State of the running backup or restore. Initially, no backup is known.
pub struct BackupProgress {
    alone: Arc<Semaphore>,
    last: Mutex<LastBackup>,
    kept: Mutex<Vec<StoredBackup>>,
    restored: Notify,
}

impl Default for BackupProgress {
    fn default() -> Self {
        let alone = Arc::new(Semaphore::new(1));
        Self { alone, last: Mutex::default(), kept: Mutex::default(), restored: Notify::new() }
    }
}

impl Backups {
    /// Reads the time of the last downloaded backup and the list of daily backups from disk.
    pub fn remember(&self) {
        let kept = std::fs::read(self.state.join(LAST)).ok();
        let last = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        *self.last_place() = last.unwrap_or_default();
        self.remember_kept();
    }

    fn last_place(&self) -> std::sync::MutexGuard<'_, LastBackup> {
        self.now.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time and size of the last backup that was downloaded completely.
    pub fn last(&self) -> LastBackup {
        *self.last_place()
    }

    /// Saves the time and size of a backup that was made and downloaded completely.
    fn made(&self, last: LastBackup) {
        let kept = serde_json::to_vec(&last).map_err(io::Error::from);
        let kept = kept.and_then(|bytes| replace_private(&self.state, LAST, &bytes));
        if let Err(error) = kept {
            tracing::warn!(%error, "cannot save the time of the backup");
        }
        *self.last_place() = last;
    }

    fn turn(&self) -> Result<OwnedSemaphorePermit, BackupError> {
        match Arc::clone(&self.now.alone).try_acquire_owned() {
            Ok(turn) => Ok(turn),
            Err(tokio::sync::TryAcquireError::Closed) => Err(BackupError::Restarting),
            Err(tokio::sync::TryAcquireError::NoPermits) => Err(BackupError::Busy),
        }
    }

    /// Makes a backup of the current state.
    ///
    /// # Errors
    /// The request is not valid, the store is lost, or the backup cannot be made.
    pub async fn create(self: &Arc<Self>, order: BackupRequest) -> Result<BackupFile, BackupError> {
        let lock = lock(order)?;
        self.is_known()?;
        self.alone(move |this, _| this.gather(&lock)).await
    }

    fn is_known(&self) -> Result<(), BackupError> {
        if self.is_lost { Err(BackupError::Lost) } else { Ok(()) }
    }

    /// Runs blocking work that must not overlap with another backup or restore. The work continues
    /// to its end even if the caller stops waiting.
    async fn alone<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>, &Handle) -> Result<T, BackupError> + Send + 'static,
    ) -> Result<T, BackupError> {
        let turn = self.turn()?;
        let (this, handle) = (Arc::clone(self), Handle::current());
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&this, &handle)
        });
        done.await.unwrap_or(Err(BackupError::Ended))
    }

    /// Restores the backup in `pieces` to a temporary folder, and returns a summary of the backup.
    ///
    /// # Errors
    /// The backup cannot be restored.
    pub async fn verify(
        self: &Arc<Self>,
        pieces: mpsc::Receiver<Bytes>,
        secret: Option<Secret>,
    ) -> Result<BackupSummary, BackupError> {
        self.alone(move |this, handle| {
            let reader = open(pieces, secret)?;
            this.rehearse(reader, handle)
        })
        .await
    }

    fn rehearse<R: Read>(
        &self,
        reader: Reader<R>,
        handle: &Handle,
    ) -> Result<BackupSummary, BackupError> {
        let folder = stage::Folder::for_rehearsal()?;
        self.stage(reader, &folder, handle)
    }

    /// Replaces the state of this box with the backup in `pieces`. The box restarts 1 s later.
    ///
    /// # Errors
    /// The backup cannot be restored; this box is then unchanged.
    pub async fn restore(
        self: &Arc<Self>,
        pieces: mpsc::Receiver<Bytes>,
        secret: Option<Secret>,
    ) -> Result<BackupSummary, BackupError> {
        let restored = self.alone(move |this, handle| {
            let reader = open(pieces, secret)?;
            this.become_that(reader, handle)
        });
        Ok(self.restart_as(restored.await?))
    }

    fn become_that<R: Read>(
        &self,
        reader: Reader<R>,
        handle: &Handle,
    ) -> Result<BackupSummary, BackupError> {
        if reader.header().encryption == "none" {
            return Err(BackupError::Plain);
        }
        let folder = stage::Folder::beside(&self.state)?;
        let report = self.stage(reader, &folder, handle)?;
        folder.commit(&self.state)?;
        // Any later backup would contain the state that the restore is about to replace.
        self.now.alone.close();
        Ok(BackupSummary { restarts: true, ..report })
    }

    fn restart_as(&self, report: BackupSummary) -> BackupSummary {
        tracing::info!(of = %report.name, made = %report.made, "a backup was restored; restarting");
        self.now.restored.notify_one();
        report
    }

    /// Waits for a restored backup, then restarts the box. Returns on `shutdown`.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let restarting = async {
            self.now.restored.notified().await;
            tokio::time::sleep(ANSWER_GRACE).await;
            match self.system_kind {
                SystemKind::Firmware => {
                    if let Err(error) = init::ask(Leave::Restart) {
                        tracing::error!(error = %stdx::chain(&error), "cannot restart the box");
                    }
                }
                SystemKind::Guest => {
                    tracing::error!(error = %again(), "cannot restart this process")
                }
            }
            std::future::pending::<()>().await;
        };
        shutdown.run_until_cancelled(restarting).await;
    }
}

/// Executes this program again in the same process. Returns only if the execution fails.
fn again() -> io::Error {
    let mut arguments = std::env::args_os();
    let own = std::env::current_exe().ok().map(Into::into);
    let named = arguments.next();
    let Some(program) = own.or(named) else { return io::Error::other("its file name is unknown") };
    Command::new(program).args(arguments).exec()
}

/// Returns the encryption that `order` requests. Exactly one key option must be set.
fn lock(order: BackupRequest) -> Result<Lock, BackupError> {
    let BackupRequest { passphrase, recipients, plain } = order;
    match (passphrase, recipients.as_slice(), plain) {
        (Some(secret), [], false) => Ok(Lock::passphrase(secret)?),
        (None, [], true) => Ok(Lock::Plain),
        (None, [_, ..], false) => {
            let read = recipients.iter().map(|text| ::backup::Recipient::parse(text));
            Ok(Lock::Recipients(read.collect::<Result<_, _>>()?))
        }
        _ => Err(BackupError::Request),
    }
}

/// Stream of an upload, limited to the maximum size of a backup.
struct Upload {
    pieces: mpsc::Receiver<Bytes>,
    piece: Bytes,
    left: u64,
}

impl Read for Upload {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            let Some(piece) = self.pieces.blocking_recv() else { return Ok(0) };
            let left = self.left.checked_sub(piece.len() as u64);
            self.left = left.ok_or_else(|| {
                let limit = stdx::bytes(FILE_BYTES_MAX);
                io::Error::from(::backup::Error::TooLarge { limit })
            })?;
            self.piece = piece;
        }
        let count = bytes.len().min(self.piece.len());
        bytes[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}

fn open(
    pieces: mpsc::Receiver<Bytes>,
    secret: Option<Secret>,
) -> Result<Reader<impl Read>, BackupError> {
    let key = secret.map(Key::given).transpose()?;
    let upload = Upload { pieces, piece: Bytes::new(), left: FILE_BYTES_MAX };
    Ok(Reader::open(upload, key.as_ref(), env!("CARGO_PKG_VERSION"))?)
}

impl StatusSource for Backups {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        view.system.backup_at = self.last().at;
        view.system.kept_backups.clone_from(&self.kept_place());
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests;
