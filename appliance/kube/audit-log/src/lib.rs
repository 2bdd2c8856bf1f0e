//! Audit records on disk, one JSON object per line, limited to a few files of a few megabytes:
//!
//! ```text
//! STATE/audit/audit.log      the newest
//! STATE/audit/audit.1.log    … audit.4.log, the oldest
//! ```
//!
//! A separate thread writes the records, because a slow disk must not delay requests. Records that
//! do not fit into the queue are dropped, and their number is written.
//!
//! Never: waits for the disk in [`AuditLog::record`], reads a clock.
//!
//! Enter at [`AuditLog`].

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rbac::{AuditRecord, RefusedRecords};

/// Maximum size of one file in bytes.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Number of older files besides the current one.
pub const MAX_OLD_FILES: usize = 4;
/// Maximum records in the queue to the writer thread.
const MAX_WAITING: usize = 1024;

/// Reason why the log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempted} {}", path.display())]
pub struct AuditLogError {
    /// Attempted operation, for the message: `create`, `write`.
    attempted: &'static str,
    /// File or folder on which the operation failed.
    path: PathBuf,
    source: io::Error,
}

impl AuditLogError {
    fn of(attempted: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { attempted, path, source }
    }
}

/// Audit log; clones share it. Dropping the last clone writes all queued records to disk.
#[derive(Clone)]
pub struct AuditLog {
    inner: Arc<Inner>,
}

struct Inner {
    folder: PathBuf,
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
    pub fn open(state_dir: &Path) -> Result<Self, AuditLogError> {
        Self::with_limit(state_dir, MAX_FILE_BYTES)
    }

    fn with_limit(state_dir: &Path, limit: u64) -> Result<Self, AuditLogError> {
        let folder = state_dir.join("audit");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(AuditLogError::of("create", &folder))?;
        let lost = Arc::new(AtomicU64::new(0));
        let file = Writer::open(&folder, limit, Arc::clone(&lost))?;
        let (lines, receiver) = sync_channel(MAX_WAITING);
        let path = folder.join("audit.log");
        let writer = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || file.run(&receiver))
            .map_err(AuditLogError::of("write", &path))?;
        let (lines, writer) = (Mutex::new(Some(lines)), Mutex::new(Some(writer)));
        let inner = Inner { folder, lines, refused: Mutex::default(), lost, writer };
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

impl AuditLog {
    /// Reads the latest records for which `is_wanted` returns true, newest first, at most `most`.
    /// Blocks: it reads up to all files.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn latest(
        &self,
        is_wanted: impl Fn(&AuditRecord) -> bool,
        most: usize,
    ) -> io::Result<Vec<AuditRecord>> {
        let mut found = Vec::new();
        for at in 0..=MAX_OLD_FILES {
            let text = match fs::read(path(&self.inner.folder, at)) {
                // A file of a turn in progress, or no older file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                text => text?,
            };
            // A line that a power cut has cut is skipped.
            let records = text.rsplit(|byte| *byte == b'\n');
            let records = records.filter_map(|line| serde_json::from_slice(line).ok());
            let wanted = records.filter(|it: &AuditRecord| !it.at.is_empty() && is_wanted(it));
            found.extend(wanted.take(most - found.len()));
            if found.len() >= most {
                break;
            }
        }
        Ok(found)
    }
}

/// Returns the path of a file: 0 for the newest.
fn path(folder: &Path, at: usize) -> PathBuf {
    match at {
        0 => folder.join("audit.log"),
        at => folder.join(format!("audit.{at}.log")),
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
    fn open(folder: &Path, limit: u64, lost: Arc<AtomicU64>) -> Result<Self, AuditLogError> {
        let path = path(folder, 0);
        let mut file = append(&path).map_err(AuditLogError::of("write", &path))?;
        end_line(&mut file).map_err(AuditLogError::of("write", &path))?;
        let size = file.metadata().map_err(AuditLogError::of("read", &path))?.len();
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

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if self.size > 0 && self.size.saturating_add(length) > self.limit {
            self.turn()?;
        }
        self.file.write_all(text)?;
        self.size = self.size.saturating_add(length);
        Ok(())
    }

    /// Starts a new file; renames the older files and replaces the oldest.
    fn turn(&mut self) -> io::Result<()> {
        let path = |at| path(&self.folder, at);
        for at in (0..MAX_OLD_FILES).rev() {
            match fs::rename(path(at), path(at + 1)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        self.file = append(&path(0))?;
        self.size = 0;
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)
}

/// Ends a last line that a power cut has cut, so that the next record has a line of its own.
fn end_line(file: &mut File) -> io::Result<()> {
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
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

    #[test]
    fn the_latest_records_are_read_over_several_files_newest_first() {
        let state = tempfile::tempdir().unwrap();
        let record = |number: u16| AuditRecord {
            at: "2026-11-29T00:00:00Z".to_owned(),
            user: if number.is_multiple_of(2) { "jane" } else { "joe" }.to_owned(),
            code: number,
            ..AuditRecord::default()
        };
        let limit = 3 * u64::try_from(record(100).line().len()).unwrap();
        let log = AuditLog::with_limit(state.path(), limit).unwrap();
        (100..110).for_each(|number| log.record(&record(number)));
        drop(log);
        let newest = state.path().join("audit/audit.log");
        let mut text = fs::read(&newest).unwrap();
        text.extend(b"{\"lost\":3}\n{\"at\":\"2026");
        fs::write(&newest, text).unwrap();
        let log = AuditLog::with_limit(state.path(), limit).unwrap();
        let codes = |user: &str, most| -> Vec<u16> {
            let found = log.latest(|it| it.user.contains(user), most).unwrap();
            found.into_iter().map(|it| it.code).collect()
        };
        assert_eq!(codes("", 4), [109, 108, 107, 106]);
        assert_eq!(codes("jane", 100), [108, 106, 104, 102, 100]);
        assert!(codes("other", 100).is_empty());
        log.record(&record(110));
        drop(log);
        let log = AuditLog::with_limit(state.path(), limit).unwrap();
        let found = log.latest(|_| true, 2).unwrap();
        let codes: Vec<u16> = found.into_iter().map(|it| it.code).collect();
        assert_eq!(codes, [110, 109], "after a cut line");
    }
}
