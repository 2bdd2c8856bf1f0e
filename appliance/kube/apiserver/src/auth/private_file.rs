//! Files that only the server's user may read (mode 0600).

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::Error;

/// Creates `path` and its missing parents, with mode 0700.
pub fn folder(path: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(Error::file("create", path))
}

/// Replaces the file `path` by `text`, durably, with mode 0600.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let written = durable_file::replace_private(folder, &name, text.as_bytes());
    written.map_err(Error::file("write", path))
}

/// Reads `path`; `None` if the file does not exist.
pub fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("read", path)(error)),
    }
}
