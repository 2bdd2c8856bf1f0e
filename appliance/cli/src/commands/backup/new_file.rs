//! Backup file on this machine, readable by the user only. A complete file gets its name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Backup file that is being written.
pub struct NewFile {
    path: PathBuf,
    part: PathBuf,
    file: Option<File>,
}

impl NewFile {
    /// Creates the partial file for the backup `path`.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub fn create(path: &Path) -> Result<Self, Error> {
        if path.exists() {
            let why = format!("{} already exists: choose another file", path.display());
            return Err(Error::Usage(why));
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let failed = |source| Error::Write { file: part.display().to_string(), source };
        // One that is there may be open to others, and stays what it is when it is written.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
        let file = Some(file.map_err(failed)?);
        Ok(Self { path: path.to_owned(), part, file })
    }

    /// Appends bytes to the partial file.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(piece));
        written.map_err(|source| self.failed(source))
    }

    /// Completes the file: flushes it to disk and gives it its name.
    pub fn finish(mut self) -> Result<(), Error> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let synced = file.sync_all().and_then(|()| fs::rename(&self.part, &self.path));
        // A name that is not on the disk is lost with the power.
        let synced = synced.and_then(|()| File::open(folder)?.sync_all());
        synced.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Write { file: self.path.display().to_string(), source }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            // An incomplete backup is useless.
            let _ = fs::remove_file(&self.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NewFile;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_another_attempt_left_gives_no_permissions_to_a_backup() {
        let folder = tempfile::tempdir().unwrap();
        let (path, part) = (folder.path().join("backup"), folder.path().join("backup.part"));
        fs::write(&part, "half of an older one").unwrap();
        fs::set_permissions(&part, fs::Permissions::from_mode(0o644)).unwrap();
        let mut new = NewFile::create(&path).unwrap();
        new.write(b"all").unwrap();
        new.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"all");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!part.exists());
    }
}
