//! Audit records on disk, one JSON object per line, limited to a few files of a few megabytes:
//!
//! ```text
//! STATE/audit/audit.log      the newest
//! STATE/audit/audit.1.log    … audit.4.log, the oldest
//! ```
//!
//! A separate thread writes the records, because a slow disk must not delay requests. Records that
//! do not fit into the queue are dropped, and their number is written.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rbac::{AuditRecord, RefusedRecords};

use crate::auth::Error;
use crate::auth::private_file;

/// Maximum size of one file in bytes.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Number of older files besides the current one.
pub const MAX_OLD_FILES: usize = 4;
/// Maximum records in the queue to the writer thread.
const MAX_WAITING: usize = 1024;

/// Audit log; clones share it. Dropping the last clone writes all queued records to disk.
#[derive(Clone)]
pub struct AuditLog {
    inner: Arc<Inner>,
}

struct Inner {
    lines: Mutex<Option<SyncSender<String>>>,
    refused: Mutex<RefusedRecords>,
    lost: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl AuditLog {
    /// Opens the log in `state_dir`.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created or the file cannot be opened.
    pub fn open(state_dir: &Path) -> Result<Self, Error> {
        Self::with_limit(state_dir, MAX_FILE_BYTES)
    }

    fn with_limit(state_dir: &Path, limit: u64) -> Result<Self, Error> {
        let folder = state_dir.join("audit");
        private_file::folder(&folder)?;
        let lost = Arc::new(AtomicU64::new(0));
        let file = Writer::open(&folder, limit, Arc::clone(&lost))?;
        let (lines, receiver) = sync_channel(MAX_WAITING);
        let path = folder.join("audit.log");
        let writer = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || file.run(&receiver))
            .map_err(Error::file("write", &path))?;
        let (lines, writer) = (Mutex::new(Some(lines)), Mutex::new(Some(writer)));
        let inner = Inner { lines, refused: Mutex::default(), lost, writer };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Queues a record for writing. Never blocks; a record is dropped if the queue is full.
    pub fn record(&self, record: &AuditRecord) {
        let lines = self.inner.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = lines.as_ref().is_some_and(|lines| lines.try_send(record.line()).is_ok());
        if !sent {
            self.inner.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl AuditLog {
    /// Queues the record of a request with an invalid credential at the monotonic time `now`. Above
    /// [`rbac::REFUSED_A_MINUTE`], records are omitted; the next record contains their number.
    pub fn refused(&self, mut record: AuditRecord, now: Duration) {
        let refused = self.inner.refused.lock();
        let Some(omitted) = refused.unwrap_or_else(PoisonError::into_inner).admit(now) else {
            return;
        };
        record.omitted = omitted;
        self.record(&record);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if writer.is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the writer of the audit log stopped unexpectedly");
        }
    }
}

struct Writer {
    folder: PathBuf,
    file: File,
    size: u64,
    limit: u64,
    lost: Arc<AtomicU64>,
    failing: bool,
}

impl Writer {
    fn open(folder: &Path, limit: u64, lost: Arc<AtomicU64>) -> Result<Self, Error> {
        let path = folder.join("audit.log");
        let file = append(&path).map_err(Error::file("write", &path))?;
        let size = file.metadata().map_err(Error::file("read", &path))?.len();
        Ok(Self { folder: folder.to_owned(), file, size, limit, lost, failing: false })
    }

    fn run(mut self, lines: &Receiver<String>) {
        while let Ok(line) = lines.recv() {
            let lost = self.lost.swap(0, Ordering::Relaxed);
            let text = match lost {
                0 => line,
                lost => format!("{{\"lost\":{lost}}}\n{line}"),
            };
            match self.write(text.as_bytes()) {
                Ok(()) => self.failing = false,
                Err(error) => {
                    self.lost.fetch_add(lost + 1, Ordering::Relaxed);
                    // Logged once, not for every record.
                    if !self.failing {
                        tracing::error!(%error, "cannot write the audit log");
                    }
                    self.failing = true;
                }
            }
        }
    }

    fn write(&mut self, text: &[u8]) -> std::io::Result<()> {
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if self.size > 0 && self.size.saturating_add(length) > self.limit {
            self.turn()?;
        }
        self.file.write_all(text)?;
        self.size = self.size.saturating_add(length);
        Ok(())
    }

    /// Starts a new file; renames the older files and replaces the oldest.
    fn turn(&mut self) -> std::io::Result<()> {
        let path = |at: usize| match at {
            0 => self.folder.join("audit.log"),
            at => self.folder.join(format!("audit.{at}.log")),
        };
        for at in (0..MAX_OLD_FILES).rev() {
            match fs::rename(path(at), path(at + 1)) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        self.file = append(&path(0))?;
        self.size = 0;
        Ok(())
    }
}

fn append(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rbac::AuditRecord;
    use tempfile::TempDir;

    use super::{AuditLog, MAX_OLD_FILES};

    #[test]
    fn the_newest_records_are_kept_and_the_files_stay_small() {
        let state = TempDir::new().unwrap();
        let (limit, count) = (1000, 200);
        let log = AuditLog::with_limit(state.path(), limit).unwrap();
        for at in 0..count {
            log.record(&AuditRecord { name: format!("n{at}"), ..AuditRecord::default() });
        }
        drop(log);
        let folder = state.path().join("audit");
        let mut files: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        assert_eq!(files.len(), MAX_OLD_FILES + 1, "{files:?}");
        for file in &files {
            assert!(fs::metadata(file).unwrap().len() <= limit, "{file:?}");
        }
        let newest = fs::read_to_string(folder.join("audit.log")).unwrap();
        assert!(newest.trim_end().lines().last().unwrap().contains("\"n199\""), "{newest}");
        // A restart appends to the same file.
        drop(AuditLog::with_limit(state.path(), limit).unwrap());
        assert_eq!(fs::read_to_string(folder.join("audit.log")).unwrap(), newest);
    }
}
