//! Files of the settings: `box.toml` on the boot volume, and revisions in the state folder.

use std::io;
use std::path::PathBuf;

use durable_file::replace_private;
use jiff::Timestamp;
use platform::slots::BootVolume;
use serde::{Deserialize, Serialize};

/// Suffix of a revision's file name.
const ENDING: &str = ".json";

/// Stored revision of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredRevision {
    /// Number of the revision, counted from 1.
    pub number: u32,
    /// Time of the change; `None` if the text was written without this module.
    pub at: Option<Timestamp>,
    /// User or place of the change.
    pub actor: String,
    /// Note of the author; may be empty.
    pub note: String,
    /// Complete text, including secrets. Only the box may read the file.
    pub text: String,
}

/// Access to the files of the settings. A write is on disk when the call returns.
pub trait Disk: Send + Sync {
    /// Reads the text, or returns `None` if the file is missing.
    ///
    /// # Errors
    /// The boot volume cannot be read.
    fn read(&self) -> Result<Option<String>, platform::Error>;
    /// Writes the text completely or not at all. `number` must be new for every change.
    ///
    /// # Errors
    /// The boot volume cannot be written. The old text stays.
    fn replace(&self, text: &str, number: u32) -> Result<(), platform::Error>;
    /// Returns every revision, oldest first.
    ///
    /// # Errors
    /// A file cannot be read.
    fn kept(&self) -> io::Result<Vec<StoredRevision>>;
    /// Stores a revision.
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

/// Files of the settings on a box that runs as firmware.
pub struct OnDisk {
    /// Boot volume, with the text.
    pub volume: BootVolume,
    /// Folder of the revisions, created if it is missing.
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

/// Reads all revisions of a folder. A damaged revision is logged and skipped.
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
