//! Files in the state folder that only the box may read, replaced durably: after a power cut there
//! is the old one or the new one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes `content` to `folder/name` with mode 0600.
///
/// # Errors
/// Those of the file system; the old file is then as it was.
pub fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let part = folder.join(format!("{name}.part"));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&part, folder.join(name))?;
    File::open(folder)?.sync_all()
}
