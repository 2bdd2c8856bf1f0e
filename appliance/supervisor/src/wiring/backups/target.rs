//! Daily backup on another server: makes it, sends it, deletes the oldest ones there, and shows the
//! result.
//!
//! ```text
//! STATE/backup-target.json    backups in the folder of the server
//! ```

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backup_target::{SentBackup, SentBackups, Target, TargetError, TargetOptions, is_due};
use config::Backup;
use durable_file::replace_private;
use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use lifecycle::backups::{BackupError, Backups};
use lifecycle::settings::LiveSettings;
use status::backup::BackupRequest;
use status::source::{Filling, StatusSource};
use status::view::{BackupTarget, Fault, StatusView, Trouble};
use stdx::{Backoff, Hint};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// File in the state folder with the backups on the server.
const SENT: &str = "backup-target.json";
/// Maximum size of this file in bytes.
const SENT_BYTES_MAX: u64 = 256 << 10;
/// Wait before the first check, so that the start of the box is not slower.
const FIRST_AFTER: Duration = Duration::from_secs(5);
/// Interval of checking if a backup is due.
const LOOKED_EVERY: Duration = Duration::from_secs(60);
/// Wait after a failure. It doubles with each failure up to the maximum.
const RETRY: Duration = Duration::from_secs(300);
const RETRY_MAX: Duration = Duration::from_secs(3600);

/// Reason why a backup is not on the server.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("cannot read the backup or save that it was sent")]
    Disk(#[source] io::Error),
}

impl Hint for SendError {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Backup(error) => error.hint(),
            Self::Target(error) => error.hint(),
            Self::Disk(_) => None,
        }
    }
}

/// Sender of the daily backup, and its state.
pub struct TargetBackups {
    backups: Arc<Backups>,
    target: Target,
    recipient: String,
    keep: usize,
    at: Option<Time>,
    live: Option<watch::Receiver<LiveSettings>>,
    state: PathBuf,
    sent: Mutex<SentBackups>,
    failure: Mutex<Option<(Timestamp, String)>>,
    /// Wakes the task for a request of a person.
    requested: Notify,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TargetBackups {
    /// Creates the sender, and reads what was sent before. `live` has the time zone of a flashed
    /// box.
    ///
    /// # Errors
    /// The options are not valid, or the state folder cannot be read.
    pub fn new(
        options: &Backup,
        backups: Arc<Backups>,
        live: Option<watch::Receiver<LiveSettings>>,
    ) -> anyhow::Result<Self> {
        let login = options.username.clone().zip(options.password.clone());
        let (folder, fingerprint) = (options.target.clone(), options.fingerprint.clone());
        let target = Target::new(&TargetOptions { folder, login, fingerprint })?;
        let state = backups.state.clone();
        let bytes = durable_file::read(&state.join(SENT), SENT_BYTES_MAX)?.unwrap_or_default();
        Ok(Self {
            backups,
            target,
            recipient: options.recipient.trim().to_owned(),
            keep: options.keep,
            at: options.time_of_day(),
            live,
            state,
            sent: Mutex::new(SentBackups::read(&bytes, &options.target)),
            failure: Mutex::default(),
            requested: Notify::new(),
        })
    }

    /// Requests a backup now, in addition to the daily one.
    pub fn send_now(&self) {
        self.requested.notify_one();
    }

    /// Sends a backup when it is due or requested, until `shutdown`.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let sending = async {
            let mut wait = FIRST_AFTER;
            let mut retry = Backoff::new(RETRY, RETRY_MAX);
            loop {
                let requested = tokio::select! {
                    () = self.requested.notified() => true,
                    () = sleep(wait) => false,
                };
                wait = LOOKED_EVERY;
                if !requested && !self.is_due() {
                    continue;
                }
                match self.send().await {
                    Ok(()) => retry.reset(),
                    Err(error) => {
                        self.failed(&error);
                        wait = retry.next_wait();
                    }
                }
            }
        };
        shutdown.run_until_cancelled(sending).await;
    }

    fn is_due(&self) -> bool {
        let zone = self.live.as_ref().map(|live| live.borrow().zone.clone());
        let zone = zone.unwrap_or_else(TimeZone::system);
        let newest = locked(&self.sent).newest().map(|it| it.at);
        is_due(newest, self.backups.clock.now(), self.at, &zone)
    }

    /// Makes a backup, sends it, and deletes the oldest ones beyond the number to keep.
    async fn send(&self) -> Result<(), SendError> {
        let recipients = vec![self.recipient.clone()];
        let request = BackupRequest { recipients, ..BackupRequest::default() };
        let made = self.backups.create(request).await?;
        let (name, bytes) = (made.name.clone(), made.last.bytes);
        let at = made.last.at.unwrap_or_else(|| self.backups.clock.now());
        let file: File = made.into_content().map_err(SendError::Disk)?;
        self.target.put(&name, file).await?;
        tracing::info!(name, host = self.target.host(), "a backup was sent");
        self.change(|sent| sent.add(SentBackup { name, at, bytes }))?;
        *locked(&self.failure) = None;
        let surplus = locked(&self.sent).surplus(self.keep);
        for name in surplus {
            match self.target.remove(&name).await {
                Ok(()) => self.change(|sent| sent.forget(&name))?,
                Err(error) => {
                    let error = stdx::chain(&error);
                    tracing::warn!(name, error, "cannot delete an old backup on the server");
                    break;
                }
            }
        }
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut SentBackups)) -> Result<(), SendError> {
        let mut sent = locked(&self.sent);
        change(&mut sent);
        replace_private(&self.state, SENT, &sent.bytes()).map_err(SendError::Disk)
    }

    fn failed(&self, error: &SendError) {
        let why = stdx::sentences(error);
        tracing::warn!(host = self.target.host(), why, "the backup was not sent");
        let mut failure = locked(&self.failure);
        let since = failure.as_ref().map_or_else(|| self.backups.clock.now(), |it| it.0);
        *failure = Some((since, why));
    }
}

impl StatusSource for TargetBackups {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        let newest = locked(&self.sent).newest().cloned();
        let failure = locked(&self.failure).clone();
        let at = newest.as_ref().map(|it| it.at);
        view.system.backup_at = view.system.backup_at.max(at);
        let failed_since = failure.as_ref().map(|it| it.0);
        let failure = failure.map(|it| it.1).unwrap_or_default();
        if let Some(since) = failed_since {
            let what = format!("The daily backup is not on {}", self.target.host());
            view.faults.push(Fault {
                title: "BACKUP NOT SENT".into(),
                trouble: Trouble {
                    what: what.into(),
                    why: failure.trim_end_matches('.').into(),
                    now: "The box tries again within an hour".into(),
                    code: "BackupNotSent".into(),
                    ..Trouble::default()
                },
                since: Some(since),
                urgent: false,
            });
        }
        view.system.backup_target = Some(BackupTarget {
            host: self.target.host().into(),
            at,
            bytes: newest.map_or(0, |it| it.bytes),
            failure: failure.into(),
            failed_since,
        });
        Box::pin(std::future::ready(()))
    }
}
