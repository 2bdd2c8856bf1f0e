//! Restore of a backup into a separate folder, with the checks of a start.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use ::backup::{Part, Reader};
use apiserver::{Authenticator, Pki};
use durable_file::replace_private;
use status::backup::{BackupSummary, LastBackup};
use store::{Key, MAX_VALUE_BYTES, Store};
use tokio::runtime::Handle;

use super::gather::{LEASES, belongs};
use super::{BackupError, Backups, LAST, disk, leases, place};
use crate::storage;

/// Number of object bytes that are written to the store in one transaction.
const BATCH_BYTES: usize = 8 << 20;
/// Files that every backup except a plain backup must contain.
const NEEDED: [&str; 4] = ["pki/ca.key", "pki/ca.crt", "pki/serviceaccount.key", "tokens"];

/// Folder for the restored files, deleted on drop unless the restore was committed.
pub struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Folder {
    /// Creates a folder for a test restore in the temporary folder, which is in memory on firmware.
    pub fn for_rehearsal() -> Result<Self, BackupError> {
        let name = format!("tinbox-rehearsal-{}", stdx::random_hex(8));
        Self::make(std::env::temp_dir().join(name))
    }

    /// Creates a folder in the state folder, so that a rename can commit the restore.
    pub fn beside(state: &Path) -> Result<Self, BackupError> {
        let path = state.join(place::UNFINISHED);
        place::remove(&path).map_err(disk("remove an earlier restore"))?;
        Self::make(path)
    }

    fn make(path: PathBuf) -> Result<Self, BackupError> {
        let folder = Self { path, kept: false };
        let files = folder.files();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&files);
        made.map_err(disk("create a folder for the restore"))?;
        Ok(folder)
    }

    fn files(&self) -> PathBuf {
        self.path.join(place::FILES)
    }

    /// Makes the restore final: the next start moves the files to their places.
    pub fn commit(mut self, state: &Path) -> Result<(), BackupError> {
        sync(&self.path).map_err(disk("write the restored files"))?;
        place::commit(&self.path, state).map_err(disk("put the restored files in place"))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = place::remove(&self.path)
        {
            tracing::warn!(%error, folder = %self.path.display(), "cannot remove restored files");
        }
    }
}

/// Syncs a file, or a folder with all its contents.
fn sync(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            sync(&entry?.path())?;
        }
    }
    File::open(path)?.sync_all()
}

/// Writer of restored objects to the store, in batches.
struct ObjectWriter<'a> {
    store: Store,
    revision: u64,
    handle: &'a Handle,
    batch: Vec<(Key, Vec<u8>)>,
    bytes: usize,
}

impl ObjectWriter<'_> {
    fn put(&mut self, key: Key, value: Vec<u8>) -> Result<(), BackupError> {
        let named = |object: &serde_json::Value| object["metadata"]["name"].is_string();
        let read = serde_json::from_slice(&value).ok().filter(named);
        if read.is_none() || value.len() > MAX_VALUE_BYTES {
            return Err(BackupError::Unfit(format!("{key} is not a valid object")));
        }
        self.bytes += value.len();
        self.batch.push((key, value));
        if self.bytes < BATCH_BYTES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), BackupError> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        Ok(self.handle.block_on(self.store.adopt(self.revision, batch))?)
    }

    /// Writes the last batch. Returns the number of stored objects, counted by reading each object.
    fn end(mut self) -> Result<u64, BackupError> {
        self.flush()?;
        let mut count = 0;
        self.store.freeze()?.each(|_, _| {
            count += 1;
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(count)
    }
}

impl Backups {
    /// Writes all parts of a backup into `folder`, and runs the checks of a start on the files.
    pub(super) fn stage<R: Read>(
        &self,
        mut reader: Reader<R>,
        folder: &Folder,
        handle: &Handle,
    ) -> Result<BackupSummary, BackupError> {
        let files = folder.files();
        let header = reader.header().clone();
        let store = storage::open_aside(&files)
            .map_err(|error| BackupError::Unfit(format!("{error:#}")))?;
        let (batch, revision) = (Vec::new(), header.revision);
        let mut objects = ObjectWriter { store, revision, handle, batch, bytes: 0 };
        let (mut names, mut leases) = (Vec::new(), 0);
        while let Some((part, content)) = reader.next_part()? {
            match part {
                Part::Object { resource, namespace, name } => {
                    objects.put(Key { resource, namespace, name }, content)?;
                }
                Part::Leases { interface } => {
                    let name = format!("{}{interface}{}", LEASES.0, LEASES.1);
                    leases += leases::write(&content, &files.join(&name))?;
                    names.push(name);
                }
                Part::File { path } => {
                    if !belongs(&path) {
                        return Err(BackupError::Unfit(format!("{path} is not a file of a box")));
                    }
                    write(&files, &path, &content)?;
                    names.push(path);
                }
                Part::Settings => write(&folder.path, place::SETTINGS, &content)?,
                Part::Images => {}
            }
        }
        let count = objects.end()?;
        if count != header.contents.objects {
            return Err(BackupError::Unfit(format!("only {count} of its objects can be restored")));
        }
        if header.encryption != "none" {
            self.try_start(&files)?;
        }
        let last = LastBackup { at: Some(header.made), bytes: 0 };
        let last = serde_json::to_vec(&last).unwrap_or_default();
        write(&files, LAST, &last)?;
        names.extend([LAST, "objects.redb", "sealing.key"].map(str::to_owned));
        let names = serde_json::to_vec(&names).unwrap_or_default();
        write(&folder.path, place::NAMES, &names)?;
        let contents = header.contents;
        Ok(BackupSummary {
            name: header.name.into(),
            version: header.version.into(),
            made: header.made,
            pin: header.pin.into(),
            encryption: header.encryption.into(),
            objects: contents.objects,
            hardware: contents.hardware,
            secrets: contents.secrets,
            leases,
            files: contents.files,
            settings: contents.settings,
            restarts: false,
        })
    }

    /// Checks that the keys and tokens are complete and valid, as at a start.
    fn try_start(&self, files: &Path) -> Result<(), BackupError> {
        let missing = NEEDED.iter().find(|name| !files.join(name).is_file());
        if let Some(missing) = missing {
            return Err(BackupError::Unfit(format!("the file {missing} is missing")));
        }
        let unfit = |error: apiserver::Error| BackupError::Unfit(stdx::chain(&error));
        Authenticator::load(files).map_err(unfit)?;
        apiserver::SigningKey::ensure(files).map_err(unfit)?;
        let pki = Pki::ensure(files, &self.config.api_names(), self.clock.now()).map_err(unfit)?;
        pki.server_config().map_err(unfit)?;
        Ok(())
    }
}

fn write(folder: &Path, path: &str, content: &[u8]) -> Result<(), BackupError> {
    let (inner, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = folder.join(inner);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    let written = made.and_then(|()| replace_private(&folder, name, content));
    written.map_err(disk("write a restored file"))
}
