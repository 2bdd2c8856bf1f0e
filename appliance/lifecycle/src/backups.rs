//! Backups of this box, rehearsals, and the way back (BK-1, BK-3, HA-1): the store at one moment,
//! the keys, the leases and the settings, in the one file that crate `backup` draws.
//!
//! Never: a secret in a file that everybody can open, a restored file in the place of another
//! before all of them are on disk (`place`), a passphrase in a log.

mod daily;
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
use config::{Config, Home};
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

pub use handlers::router;
pub use place::{resume, unrestored};
use provisioning::images::Images;
use provisioning::networks::leases::OpenLeases;
pub use spool::Made;

/// Pieces of an upload that may wait for the disk.
pub const PIECES: usize = 4;
/// The last backup that was made.
const LAST: &str = "backup.json";
/// How long the answer to a restore may take to reach whoever asked, before the box restarts.
const ANSWER_GRACE: Duration = Duration::from_secs(1);

/// Why a backup is not made, or not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// One at a time.
    #[error("another backup or restore is under way\nhint: wait until it has ended")]
    Busy,
    /// A restore waits for the restart.
    #[error("a backup was restored, and this box is about to restart\nhint: ask again then")]
    Restarting,
    /// The order says too little or too much.
    #[error("a backup is for a passphrase, or for public keys, or plain: say one of them")]
    Request,
    /// The file, or what opens it.
    #[error("{}", stdx::with_hint(.0))]
    Backup(::backup::Error),
    /// Nothing can be made of it.
    #[error(
        "a plain backup has neither keys nor secrets: no box can be made of it\nhint: restore one \
         that was made with a passphrase"
    )]
    Plain,
    /// Something in it is not what a box has.
    #[error("this backup is of no use: {0}\nhint: make a new one on the box that it is from")]
    Unfit(String),
    /// On somebody else's system.
    #[error(
        "this Tinbox is a program on somebody else's system, and keeps no backups\nhint: make one \
         with `tinbox backup create`"
    )]
    Nowhere,
    /// What was stored is lost, so what would be kept is not it.
    #[error("what this box stored cannot be read: restore a backup first")]
    Lost,
    /// The box keeps none of this name.
    #[error("the box keeps no backup {0:?}\nhint: `tinbox backup list` shows those it keeps")]
    NoSuch(String),
    /// The disk.
    #[error("cannot {attempt}")]
    Disk {
        /// What was being done.
        attempt: &'static str,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// The store.
    #[error("cannot read or make the store")]
    Store(#[from] store::Error),
    /// The leases.
    #[error("cannot read or make the leases")]
    Leases(#[from] dhcp::Error),
    /// The program itself.
    #[error("the backup ended without a word")]
    Ended,
}

impl From<::backup::Error> for Refused {
    fn from(error: ::backup::Error) -> Self {
        Self::Backup(error)
    }
}

fn disk(attempt: &'static str) -> impl FnOnce(io::Error) -> Refused {
    move |source| Refused::Disk { attempt, source }
}

/// The backups of this box.
pub struct Backups {
    /// What is kept.
    pub store: Store,
    /// Where everything that survives lies.
    pub state: PathBuf,
    /// Where it keeps those that it makes itself, if anywhere: on another volume than the state.
    pub kept_in: Option<PathBuf>,
    /// Nothing is known of what was stored: there is nothing to back up.
    pub is_lost: bool,
    /// What the owner wrote; may be absent.
    pub settings: PathBuf,
    /// Whether that file is the box's to write.
    pub home: Home,
    /// What the box is called.
    pub name: String,
    /// Its pin.
    pub pin: String,
    /// What it says.
    pub config: Arc<Config>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The cache.
    pub images: Images,
    /// The leases that are open.
    pub leases: OpenLeases,
    /// What is going on.
    pub now: Now,
}

/// What is going on with backups.
pub struct Now {
    alone: Arc<Semaphore>,
    last: Mutex<LastBackup>,
    kept: Mutex<Vec<StoredBackup>>,
    restored: Notify,
}

impl Default for Now {
    fn default() -> Self {
        let alone = Arc::new(Semaphore::new(1));
        Self { alone, last: Mutex::default(), kept: Mutex::default(), restored: Notify::new() }
    }
}

impl Backups {
    /// Reads when the last one was made.
    pub fn remember(&self) {
        let kept = std::fs::read(self.state.join(LAST)).ok();
        let last = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        *self.last_place() = last.unwrap_or_default();
        self.remember_kept();
    }

    fn last_place(&self) -> std::sync::MutexGuard<'_, LastBackup> {
        self.now.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last one that was made.
    pub fn last(&self) -> LastBackup {
        *self.last_place()
    }

    /// One was made, and all of it taken away.
    fn made(&self, last: LastBackup) {
        let kept = serde_json::to_vec(&last).map_err(io::Error::from);
        let kept = kept.and_then(|bytes| replace_private(&self.state, LAST, &bytes));
        if let Err(error) = kept {
            tracing::warn!(%error, "cannot write down when the backup was made");
        }
        *self.last_place() = last;
    }

    fn turn(&self) -> Result<OwnedSemaphorePermit, Refused> {
        match Arc::clone(&self.now.alone).try_acquire_owned() {
            Ok(turn) => Ok(turn),
            Err(tokio::sync::TryAcquireError::Closed) => Err(Refused::Restarting),
            Err(tokio::sync::TryAcquireError::NoPermits) => Err(Refused::Busy),
        }
    }

    /// A backup of this moment.
    ///
    /// # Errors
    /// Why not.
    pub async fn create(self: &Arc<Self>, order: BackupRequest) -> Result<Made, Refused> {
        let lock = lock(order)?;
        self.is_known()?;
        self.alone(move |this, _| this.gather(&lock)).await
    }

    fn is_known(&self) -> Result<(), Refused> {
        if self.is_lost { Err(Refused::Lost) } else { Ok(()) }
    }

    /// Does what blocks and has to be alone, to its end even where nobody waits for it any more.
    async fn alone<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>, &Handle) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        let turn = self.turn()?;
        let (this, handle) = (Arc::clone(self), Handle::current());
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&this, &handle)
        });
        done.await.unwrap_or(Err(Refused::Ended))
    }

    /// Restores the backup that comes in `pieces` where it harms nobody, and says what was in it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub async fn verify(
        self: &Arc<Self>,
        pieces: mpsc::Receiver<Bytes>,
        secret: Option<Secret>,
    ) -> Result<BackupSummary, Refused> {
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
    ) -> Result<BackupSummary, Refused> {
        let folder = stage::Folder::for_rehearsal()?;
        self.stage(reader, &folder, handle)
    }

    /// Makes this box the one of the backup that comes in `pieces`; it restarts a moment after
    /// this answers.
    ///
    /// # Errors
    /// What is wrong with it; this box is then as it was.
    pub async fn restore(
        self: &Arc<Self>,
        pieces: mpsc::Receiver<Bytes>,
        secret: Option<Secret>,
    ) -> Result<BackupSummary, Refused> {
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
    ) -> Result<BackupSummary, Refused> {
        if reader.header().encryption == "none" {
            return Err(Refused::Plain);
        }
        let folder = stage::Folder::beside(&self.state)?;
        let report = self.stage(reader, &folder, handle)?;
        folder.commit(&self.state)?;
        // Whatever is made from here on would be of a box that is gone.
        self.now.alone.close();
        Ok(BackupSummary { restarts: true, ..report })
    }

    fn restart_as(&self, report: BackupSummary) -> BackupSummary {
        tracing::info!(of = %report.name, made = %report.made, "a backup was restored; restarting");
        self.now.restored.notify_one();
        report
    }

    /// Restarts the box once a backup was restored.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let restarting = async {
            self.now.restored.notified().await;
            tokio::time::sleep(ANSWER_GRACE).await;
            match self.home {
                Home::Firmware => {
                    if let Err(error) = init::ask(Leave::Restart) {
                        tracing::error!(error = %stdx::chain(&error), "the box does not restart");
                    }
                }
                Home::Guest => tracing::error!(error = %again(), "cannot start anew: restart it"),
            }
            std::future::pending::<()>().await;
        };
        shutdown.run_until_cancelled(restarting).await;
    }
}

/// This program again, in its own place, as after a power cut; returns only when that fails.
fn again() -> io::Error {
    let mut arguments = std::env::args_os();
    let own = std::env::current_exe().ok().map(Into::into);
    let named = arguments.next();
    let Some(program) = own.or(named) else { return io::Error::other("it has no name") };
    Command::new(program).args(arguments).exec()
}

/// Who may open what is to be made.
fn lock(order: BackupRequest) -> Result<Lock, Refused> {
    let BackupRequest { passphrase, recipients, plain } = order;
    match (passphrase, recipients.as_slice(), plain) {
        (Some(secret), [], false) => Ok(Lock::passphrase(secret)?),
        (None, [], true) => Ok(Lock::Plain),
        (None, [_, ..], false) => {
            let read = recipients.iter().map(|text| ::backup::Recipient::parse(text));
            Ok(Lock::Recipients(read.collect::<Result<_, _>>()?))
        }
        _ => Err(Refused::Request),
    }
}

/// The pieces of an upload as a stream; no more of them than a backup may have.
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
) -> Result<Reader<impl Read>, Refused> {
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
