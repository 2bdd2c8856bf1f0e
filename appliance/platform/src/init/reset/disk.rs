//! Changes that a reset makes to the disk. Each change is durable before the next one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{FILES, Level, NOTE};
use crate::slots::{BootVolume, Slot};
use crate::{Error, sys};

/// Bytes that are overwritten at once.
const PIECE: usize = 64 << 10;

/// Disk that a reset changes. A power cut may come before or after each change.
pub trait Disk {
    /// Returns the entries of a folder. The flag is true for a folder. A missing folder has no
    /// entries.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn list(&self, folder: &Path) -> io::Result<Vec<(PathBuf, bool)>>;
    /// Writes the note of `level` into the folder `state`, durably.
    ///
    /// # Errors
    /// The write failed. The old note is unchanged.
    fn note(&mut self, state: &Path, level: Level) -> io::Result<()>;
    /// Overwrites the bytes of a file in place, durably.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the file does not exist.
    fn overwrite(&mut self, file: &Path) -> io::Result<()>;
    /// Removes a file. A missing file is accepted.
    ///
    /// # Errors
    /// The file still exists.
    fn remove_file(&mut self, file: &Path) -> io::Result<()>;
    /// Removes an empty folder. A missing folder is accepted.
    ///
    /// # Errors
    /// The folder still exists.
    fn remove_folder(&mut self, folder: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable. A missing folder is accepted.
    ///
    /// # Errors
    /// The names may not be durable.
    fn sync(&mut self, folder: &Path) -> io::Result<()>;
    /// Discards the free blocks of the volume (TRIM). A failure is printed only.
    fn trim(&mut self, folder: &Path);
    /// Removes the reset request from the boot volume, durably.
    ///
    /// # Errors
    /// The request still exists.
    fn answer(&mut self) -> Result<(), Error>;
    /// Erases the owner's settings and all copies of them from the boot volume, durably.
    ///
    /// # Errors
    /// The settings may still exist.
    fn unset(&mut self) -> Result<(), Error>;
}

/// Disk of the running box.
#[derive(Debug)]
pub struct Host {
    /// Boot volume with the reset request and the owner's settings.
    pub volume: BootVolume,
    /// Running slot, which is marked good if a damaged block of variables is repaired.
    pub running: Slot,
}

impl Disk for Host {
    fn list(&self, folder: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        // A symbolic link is not followed, because its target is outside of the folder.
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
            eprintln!("tinbox: cannot discard the free space of the disk: {error}");
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
