//! A backup on this machine: for nobody else, and there only once all of it is.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A file that is being written.
pub struct New {
    path: PathBuf,
    part: PathBuf,
    file: Option<File>,
}

impl New {
    /// Begins one.
    ///
    /// # Errors
    /// It is there already, or cannot be.
    pub fn create(path: &Path) -> Result<Self, Error> {
        if path.exists() {
            let why = format!("{} is there already: name another file", path.display());
            return Err(Error::Usage(why));
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&part);
        let failed = |source| Error::Write { file: part.display().to_string(), source };
        let file = Some(file.map_err(failed)?);
        Ok(Self { path: path.to_owned(), part, file })
    }

    /// More of it.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(piece));
        written.map_err(|source| self.failed(source))
    }

    /// All of it is there.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn finish(mut self) -> Result<(), Error> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let synced = file.sync_all().and_then(|()| std::fs::rename(&self.part, &self.path));
        synced.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Write { file: self.path.display().to_string(), source }
    }
}

impl Drop for New {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Half a backup is none.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}
