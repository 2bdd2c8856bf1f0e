//! Daily backups that the box makes itself, against damage of its store. The backups are on the
//! cache volume, encrypted with `backup.key`, which a factory reset destroys.
//!
//! ```text
//! CACHE/backups/2026-11-26T02-30-00Z.boxbak
//! STATE/backup.key                            a secret key of age
//! ```
//!
//! Never: a backup of a lost store, an old backup removed before a newer one is complete.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufReader, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use ::backup::{Header, Identity, Key, Lock, Reader, head};
use durable_file::replace_private;
use jiff::{SignedDuration, Timestamp};
use status::backup::{BackupSummary, StoredBackup};
use stdx::Secret;
use tokio_util::sync::CancellationToken;

use super::{BackupError, Backups, disk, spool};
use crate::keys::sealing::Keys;

/// File with the key of the daily backups, in the state folder.
pub const KEY: &str = "backup.key";
/// Suffix of a backup's file name.
const ENDING: &str = ".boxbak";
/// Maximum number of stored backups. The oldest backups are removed.
pub const KEPT: usize = 3;
/// Interval of checking if a backup is due. The first check is one interval after the start.
const LOOKED_EVERY: Duration = Duration::from_secs(600);
/// Age of the newest backup at which the next backup is due: one day.
const AGE_MAX: SignedDuration = SignedDuration::from_hours(24);

/// True if the next backup is due. `newest` has time and store revision of the newest backup.
fn is_due(newest: Option<(Timestamp, u64)>, now: Timestamp, revision: u64) -> bool {
    match newest {
        None => true,
        // A backup from the future was made with a wrong clock, and must not delay the next.
        Some((made, _)) if made > now => true,
        Some((made, of)) => of != revision && now.duration_since(made) >= AGE_MAX,
    }
}

impl Backups {
    /// Makes a backup each day until `shutdown`, unless the store is lost or the box has no folder
    /// for backups.
    pub async fn daily(self: Arc<Self>, shutdown: CancellationToken) {
        let folder = self.kept_in.clone().filter(|_| !self.is_lost);
        let Some(folder) = folder else { return shutdown.cancelled().await };
        let turning = async {
            loop {
                tokio::time::sleep(LOOKED_EVERY).await;
                if let Err(refused) = self.make_one(&folder).await {
                    let error = stdx::chain(&refused);
                    tracing::warn!(error, "the daily backup failed");
                }
            }
        };
        shutdown.run_until_cancelled(turning).await;
    }

    /// Makes a backup if the next backup is due.
    async fn make_one(self: &Arc<Self>, folder: &Path) -> Result<(), BackupError> {
        let folder = folder.to_owned();
        self.alone(move |this, _| {
            let newest = listed(&folder)?.into_iter().next_back();
            let newest = newest.map(|(_, header)| (header.made, header.revision));
            if is_due(newest, this.clock.now(), this.store.revision()) {
                this.keep_one(&folder)?;
            }
            Ok(())
        })
        .await
    }

    /// Makes a backup now, in addition to the daily backups.
    ///
    /// # Errors
    /// The box has no folder for backups, its store is lost, or the backup cannot be made.
    pub async fn keep_now(self: &Arc<Self>) -> Result<StoredBackup, BackupError> {
        let folder = self.kept_in.clone().ok_or(BackupError::Nowhere)?;
        self.is_known()?;
        self.alone(move |this, _| this.keep_one(&folder)).await?;
        let newest = self.kept_place().first().cloned();
        newest.ok_or(BackupError::Ended)
    }

    /// Makes a backup, and removes the oldest backups above [`KEPT`]. Blocks while writing to disk.
    fn keep_one(&self, folder: &Path) -> Result<(), BackupError> {
        let folder = folder.to_owned();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(disk("create the folder of the backups"))?;
        let lock = Lock::Recipients(vec![self.identity()?.1]);
        let made = self.gather(&lock)?;
        let name = format!("{}{ENDING}", self.clock.now().strftime("%Y-%m-%dT%H-%M-%SZ"));
        made.into_file(&folder, &name).map_err(disk("save the backup"))?;
        let all = listed(&folder)?;
        for (name, _) in all.iter().rev().skip(KEPT) {
            fs::remove_file(folder.join(name)).map_err(disk("remove an old backup"))?;
        }
        tracing::info!(name, "the box was backed up");
        self.remember_kept();
        Ok(())
    }

    /// Reads the list of stored backups from disk.
    pub(super) fn remember_kept(&self) {
        match self.kept() {
            Ok(kept) => *self.kept_place() = kept,
            Err(refused) => {
                let error = stdx::chain(&refused);
                tracing::warn!(error, "cannot list the box's own backups");
            }
        }
    }

    pub(super) fn kept_place(&self) -> MutexGuard<'_, Vec<StoredBackup>> {
        self.now.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stored backups, newest first.
    ///
    /// # Errors
    /// The folder or a backup cannot be read.
    pub fn kept(&self) -> Result<Vec<StoredBackup>, BackupError> {
        let Some(folder) = &self.kept_in else { return Ok(Vec::new()) };
        let mut all = listed(folder)?;
        all.reverse();
        let kept = all.into_iter().map(|(name, header)| StoredBackup {
            name: name.into(),
            made: header.made,
            bytes: header.size,
            objects: header.contents.objects,
            hardware: header.contents.hardware,
        });
        Ok(kept.collect())
    }

    /// Verifies the stored backup `name`, as [`Backups::verify`] does.
    ///
    /// # Errors
    /// The backup does not exist, or cannot be restored.
    pub async fn verify_kept(self: &Arc<Self>, name: String) -> Result<BackupSummary, BackupError> {
        self.alone(move |this, handle| this.rehearse(this.open_kept(&name)?, handle)).await
    }

    /// Restores the stored backup `name`, as [`Backups::restore`] does.
    ///
    /// # Errors
    /// The backup does not exist, or cannot be restored; this box is then unchanged.
    pub async fn restore_kept(
        self: &Arc<Self>,
        name: String,
    ) -> Result<BackupSummary, BackupError> {
        let restored =
            self.alone(move |this, handle| this.become_that(this.open_kept(&name)?, handle));
        Ok(self.restart_as(restored.await?))
    }

    fn open_kept(&self, name: &str) -> Result<Reader<File>, BackupError> {
        let none = || BackupError::NoSuch(name.chars().take(100).collect());
        let folder = self.kept_in.as_ref().ok_or_else(none)?;
        // Only listed names are opened, so that a name cannot lead out of the folder.
        let known = listed(folder)?.into_iter().any(|(known, _)| known == name);
        let file = known.then(|| File::open(folder.join(name))).ok_or_else(none)?;
        let file = file.map_err(disk("open the backup"))?;
        let key = Key::Identity(self.identity()?.0);
        Ok(Reader::open(file, Some(&key), env!("CARGO_PKG_VERSION"))?)
    }

    /// Reads the key of the daily backups. Generates and stores a missing key.
    fn identity(&self) -> Result<(Identity, ::backup::Recipient), BackupError> {
        let read = disk("read backup.key");
        let found = Keys::of(&self.state, self.system_kind).read(KEY).map_err(io::Error::other);
        let text = match found.map(|bytes| bytes.map(String::from_utf8)) {
            Ok(Some(Ok(text))) => Secret::from(text),
            Ok(Some(Err(error))) => return Err(read(io::Error::other(error))),
            Ok(None) => {
                let made = Identity::generate()?.text();
                replace_private(&self.state, KEY, made.expose().as_bytes())
                    .map_err(disk("save the key of the backups"))?;
                made
            }
            Err(error) => return Err(read(error)),
        };
        let identity = Identity::parse(text.expose().trim())?;
        let recipient = identity.recipient();
        let recipient =
            recipient.ok_or_else(|| BackupError::Unfit("backup.key is damaged".into()))?;
        Ok((identity, recipient))
    }
}

/// Returns name and header of each complete backup in a folder, oldest first.
fn listed(folder: &Path) -> Result<Vec<(String, Header)>, BackupError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(disk("list the backups"))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(disk("list the backups"))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.ends_with(ENDING) {
            continue;
        }
        let file = File::open(entry.path()).map_err(disk("open a backup"))?;
        match head(&mut BufReader::new(file), env!("CARGO_PKG_VERSION")) {
            Ok(header) => found.push((name, header)),
            Err(error) => tracing::warn!(name, error = stdx::chain(&error), "no backup"),
        }
    }
    // Sorted by revision first: a backup made with a wrong clock must not stay the newest for ever.
    found.sort_by(|(a, one), (b, other)| (one.revision, a).cmp(&(other.revision, b)));
    Ok(found)
}

impl spool::BackupFile {
    /// Writes the backup durably to `folder/name`.
    fn into_file(mut self, folder: &Path, name: &str) -> io::Result<()> {
        use std::io::{Seek as _, SeekFrom};
        let part: PathBuf = folder.join(format!("{name}.part"));
        let written = (|| {
            self.file.seek(SeekFrom::Start(0))?;
            let mut file = File::create(&part)?;
            io::copy(&mut self.file, &mut file)?;
            file.sync_all()?;
            fs::rename(&part, folder.join(name))?;
            File::open(folder)?.sync_all()
        })();
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::is_due;

    #[test]
    fn one_is_due_once_a_day_where_something_changed() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-11-26T02:30:00Z");
        assert!(is_due(None, now, 1), "the first");
        let yesterday = at("2026-11-25T02:30:00Z");
        assert!(is_due(Some((yesterday, 1)), now, 2));
        assert!(!is_due(Some((yesterday, 2)), now, 2), "nothing changed");
        assert!(!is_due(Some((at("2026-11-25T02:31:00Z"), 1)), now, 2), "not a day old");
        assert!(is_due(Some((at("2027-01-01T00:00:00Z"), 2)), now, 2), "the clock was ahead");
    }
}
