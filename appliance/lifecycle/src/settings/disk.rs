//! Files of the settings: the text on the boot volume, and a file in the state folder per revision.

use std::io;
use std::path::PathBuf;

use durable_file::replace_private;
use jiff::Timestamp;
use platform::slots::BootVolume;
use serde::{Deserialize, Serialize};

/// Suffix of a revision's file.
const ENDING: &str = ".json";

/// Stored revision of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredRevision {
    /// Number of the revision, counted from 1.
    pub number: u32,
    /// Time of the change; `None` if the text was written from outside.
    pub at: Option<Timestamp>,
    /// User or place of the change.
    pub actor: String,
    /// Note of the author; may be empty.
    pub note: String,
    /// Complete text, including secrets: only the box may read the file.
    pub text: String,
}

/// Access to the files of the settings. Writes are on disk when a call returns.
pub trait Disk: Send + Sync {
    /// Reads the text; `None` when there is none.
    ///
    /// # Errors
    /// The boot volume cannot be read.
    fn read(&self) -> Result<Option<String>, platform::Error>;
    /// Writes the text, whole or not at all; `number` is a new one for every change.
    ///
    /// # Errors
    /// The boot volume cannot be written; the old text stays.
    fn replace(&self, text: &str, number: u32) -> Result<(), platform::Error>;
    /// Lists every revision, oldest first.
    ///
    /// # Errors
    /// A file cannot be read.
    fn kept(&self) -> io::Result<Vec<StoredRevision>>;
    /// Stores one more revision.
    ///
    /// # Errors
    /// The file cannot be written.
    fn keep(&self, revision: &StoredRevision) -> io::Result<()>;
    /// Deletes a revision.
    ///
    /// # Errors
    /// The file cannot be deleted.
    fn forget(&self, number: u32) -> io::Result<()>;
}

/// Files of the settings on a box with its own system.
pub struct OnDisk {
    /// Boot volume, with the text.
    pub volume: BootVolume,
    /// Folder of the revisions; made when it is absent.
    pub folder: PathBuf,
}

impl Disk for OnDisk {
    fn read(&self) -> Result<Option<String>, platform::Error> {
        self.volume.settings()
    }

    fn replace(&self, text: &str, number: u32) -> Result<(), platform::Error> {
        self.volume.replace_settings(text, number)
    }

    fn kept(&self) -> io::Result<Vec<StoredRevision>> {
        kept(&self.folder)
    }

    fn keep(&self, revision: &StoredRevision) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        replace_private(&self.folder, &name(revision.number), &serde_json::to_vec(revision)?)
    }

    fn forget(&self, number: u32) -> io::Result<()> {
        std::fs::remove_file(self.folder.join(name(number)))
    }
}

fn name(number: u32) -> String {
    format!("{number:08}{ENDING}")
}

/// Reads all revisions of a folder. A damaged one is logged, and does not block the others.
fn kept(folder: &std::path::Path) -> io::Result<Vec<StoredRevision>> {
    let files = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        files => files?,
    };
    let mut all = Vec::new();
    for file in files {
        let path = file?.path();
        if !path.to_string_lossy().ends_with(ENDING) {
            continue;
        }
        match serde_json::from_slice::<StoredRevision>(&std::fs::read(&path)?) {
            Ok(revision) => all.push(revision),
            Err(error) => {
                tracing::warn!(%error, file = %path.display(), "a revision cannot be read");
            }
        }
    }
    all.sort_by_key(|revision| revision.number);
    Ok(all)
}
