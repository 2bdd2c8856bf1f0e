//! Files that only the owner may read, written whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::Error;

/// Creates `path` and what leads to it, entered by the owner only.
pub fn folder(path: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(Error::file("create", path))
}

/// Writes `text` to `path` with mode 0600: a neighbouring file first, synced, then renamed.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    let written = (|| {
        // A leftover of an interrupted write could have another mode.
        if fresh.exists() {
            fs::remove_file(&fresh)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    })();
    written.map_err(Error::file("write", path))
}

/// Reads `path`; `None` when it does not exist.
pub fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("read", path)(error)),
    }
}
