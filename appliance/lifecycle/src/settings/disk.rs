//! Where the settings and their revisions lie: the text on the boot volume, the revisions in the
//! state folder, a file each.

use std::io;
use std::path::PathBuf;

use durable_file::replace_private;
use jiff::Timestamp;
use platform::slots::BootVolume;
use serde::{Deserialize, Serialize};

/// The ending of a revision's file.
const ENDING: &str = ".json";

/// A revision as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// Counted from 1.
    pub number: u32,
    /// When it was written; `None`: while the box did not look.
    pub at: Option<Timestamp>,
    /// Who wrote it.
    pub actor: String,
    /// What they said about it.
    pub note: String,
    /// All of it, secrets too: the file is for nobody else.
    pub text: String,
}

/// The host's edge. What is written is on disk when a call returns.
pub trait Disk: Send + Sync {
    /// The text; `None` when there is none.
    ///
    /// # Errors
    /// Those of the boot volume.
    fn read(&self) -> Result<Option<String>, platform::Error>;
    /// Writes the text, whole or not at all; `number` is a new one for every change.
    ///
    /// # Errors
    /// Those of the boot volume.
    fn replace(&self, text: &str, number: u32) -> Result<(), platform::Error>;
    /// Every revision, the oldest first.
    ///
    /// # Errors
    /// Those of the file system.
    fn kept(&self) -> io::Result<Vec<Kept>>;
    /// Keeps one more.
    ///
    /// # Errors
    /// Those of the file system.
    fn keep(&self, revision: &Kept) -> io::Result<()>;
    /// Keeps one less.
    ///
    /// # Errors
    /// Those of the file system.
    fn forget(&self, number: u32) -> io::Result<()>;
}

/// The disk of a box of its own.
pub struct OnDisk {
    /// With the text.
    pub volume: BootVolume,
    /// With the revisions; made when it is absent.
    pub folder: PathBuf,
}

impl Disk for OnDisk {
    fn read(&self) -> Result<Option<String>, platform::Error> {
        self.volume.settings()
    }

    fn replace(&self, text: &str, number: u32) -> Result<(), platform::Error> {
        self.volume.replace_settings(text, number)
    }

    fn kept(&self) -> io::Result<Vec<Kept>> {
        kept(&self.folder)
    }

    fn keep(&self, revision: &Kept) -> io::Result<()> {
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

/// One that is damaged is left out, and said: it must not stand in the way of all others.
fn kept(folder: &std::path::Path) -> io::Result<Vec<Kept>> {
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
        match serde_json::from_slice::<Kept>(&std::fs::read(&path)?) {
            Ok(revision) => all.push(revision),
            Err(error) => {
                tracing::warn!(%error, file = %path.display(), "a revision cannot be read");
            }
        }
    }
    all.sort_by_key(|revision| revision.number);
    Ok(all)
}
