//! Finished backup in a file. The complete backup is on disk before the first byte is sent. A
//! client therefore gets a complete backup or an error, and a slow client does not block the store.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use futures_util::TryStreamExt as _;
use status::backup::LastBackup;
use tokio_util::io::ReaderStream;

use super::{BackupError, Backups, disk};

const PART: &str = "backup.part";
/// Size in bytes of one read.
const PIECE: usize = 64 << 10;

/// Finished backup in a file that has no name on disk.
pub struct BackupFile {
    pub(super) file: File,
    /// File name that the response proposes to the client.
    pub name: String,
    /// Size and time of the backup.
    pub last: LastBackup,
}

/// Creates a file in `folder` without a name, which the kernel deletes when the file is closed.
pub fn file(folder: &Path) -> io::Result<File> {
    let path = folder.join(PART);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).mode(0o600);
    let file = options.open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

impl BackupFile {
    /// Returns the file, from its first byte.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn into_content(mut self) -> io::Result<File> {
        self.file.seek(SeekFrom::Start(0))?;
        Ok(self.file)
    }

    /// Returns the body of a response. After its last byte, the box saves the time of the backup.
    pub fn body(mut self, backups: &Arc<Backups>) -> Result<Body, BackupError> {
        self.file.seek(SeekFrom::Start(0)).map_err(disk("read the backup"))?;
        let (last, backups) = (self.last, Arc::clone(backups));
        let mut left = last.bytes;
        let pieces = ReaderStream::with_capacity(tokio::fs::File::from_std(self.file), PIECE);
        let pieces = pieces.inspect_ok(move |piece| {
            left = left.saturating_sub(piece.len() as u64);
            if left == 0 {
                backups.made(last);
            }
        });
        Ok(Body::from_stream(pieces))
    }
}
