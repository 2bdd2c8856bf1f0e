//! What a reset does to the disk, one durable change at a time.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{FILES, Level, NOTE};
use crate::slots::{BootVolume, Slot};
use crate::{Error, sys};

/// Bytes that are overwritten at once.
const PIECE: usize = 64 << 10;

/// A disk that a reset changes. A power cut may come before or after each of these.
pub trait Disk {
    /// What is in a folder, and whether it is a folder itself; nothing is in one that is not there.
    ///
    /// # Errors
    /// Those of the file system, here and below.
    fn list(&self, folder: &Path) -> io::Result<Vec<(PathBuf, bool)>>;
    /// Writes the note of this level into `state`, durably.
    ///
    /// # Errors
    /// The old note is there then.
    fn note(&mut self, state: &Path, level: Level) -> io::Result<()>;
    /// Overwrites a file's bytes where they lie, durably.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when there is none.
    fn overwrite(&mut self, file: &Path) -> io::Result<()>;
    /// Removes a file; that there is none is no error.
    ///
    /// # Errors
    /// It is there still.
    fn remove_file(&mut self, file: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    ///
    /// # Errors
    /// It is there still.
    fn remove_folder(&mut self, folder: &Path) -> io::Result<()>;
    /// Makes durable which names are in a folder; one that is not there has none.
    ///
    /// # Errors
    /// It may not be.
    fn sync(&mut self, folder: &Path) -> io::Result<()>;
    /// Lets the disk forget what is free; not every disk can.
    fn trim(&mut self, folder: &Path);
    /// Takes away what asked, on the boot volume, durably.
    ///
    /// # Errors
    /// It asks still.
    fn answer(&mut self) -> Result<(), Error>;
    /// Erases the owner's settings and their copies from the boot volume, durably.
    ///
    /// # Errors
    /// They may be there still.
    fn unset(&mut self) -> Result<(), Error>;
}

/// The box's own disk.
#[derive(Debug)]
pub struct Host {
    /// The boot volume.
    pub volume: BootVolume,
    /// The slot that runs.
    pub running: Slot,
}

impl Disk for Host {
    fn list(&self, folder: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        // What a link leads to is not in the folder.
        let entries = entries.map(|entry| {
            let entry = entry?;
            Ok((entry.path(), entry.file_type()?.is_dir()))
        });
        entries.collect()
    }

    fn note(&mut self, state: &Path, level: Level) -> io::Result<()> {
        durable_file::replace(state, NOTE, level.word().as_bytes())
    }

    fn overwrite(&mut self, file: &Path) -> io::Result<()> {
        let mut file = File::options().write(true).open(file)?;
        let mut left = file.metadata()?.len();
        let zeros = vec![0; PIECE];
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            file.write_all(zeros.get(..count).unwrap_or_default())?;
            left -= count as u64;
        }
        file.sync_all()
    }

    fn remove_file(&mut self, file: &Path) -> io::Result<()> {
        gone(fs::remove_file(file))
    }

    fn remove_folder(&mut self, folder: &Path) -> io::Result<()> {
        gone(fs::remove_dir(folder))
    }

    fn sync(&mut self, folder: &Path) -> io::Result<()> {
        gone(File::open(folder).and_then(|folder| folder.sync_all()))
    }

    fn trim(&mut self, folder: &Path) {
        let trimmed = File::open(folder).and_then(|folder| sys::trim(&folder));
        if let Err(error) = trimmed {
            eprintln!("tinbox: the disk does not forget what is free: {error}");
        }
    }

    fn answer(&mut self) -> Result<(), Error> {
        self.volume.change(self.running, |all| all.forget_wish())?;
        self.volume.forget(&FILES)
    }

    fn unset(&mut self) -> Result<(), Error> {
        self.volume.erase_settings()
    }
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
