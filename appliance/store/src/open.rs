//! Opening the file: made whole or not at all, readable by its owner only, of a format we know.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use redb::backends::FileBackend;
use redb::{
    Builder, Database, DatabaseError, ReadableTable, ReadableTableMetadata, StorageBackend,
};

use crate::Error;
use crate::error::{damaged, storage};
use crate::group::{Totals, begin};
use crate::tables::{
    CHANGELOG, FORMAT, META, META_FLOOR, META_FORMAT, META_LOG_BYTES, META_REVISION, OBJECTS,
};

/// redb's page cache: the whole working set of a rack, and a bound on the memory of a repair.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// Files up to this size are checked page by page whenever they are opened (about 0.3 ms a
/// mebibyte), since redb may panic on pages that a failing disk has changed.
const CHECKED_BYTES: u64 = 256 * 1024 * 1024;

/// The file holds secrets: its owner reads it, nobody else.
const FILE_MODE: u32 = 0o600;

/// How much history the store keeps for watches to resume from.
#[derive(Clone)]
pub struct Options {
    /// Changes kept in the log.
    pub log_entries: u64,
    /// Bytes of log kept.
    pub log_bytes: u64,
    /// Age after which a change leaves the log, so that deleted secrets do not linger in it.
    pub log_age: Duration,
    /// The box's clock; dates the log, nothing else.
    pub clock: Arc<dyn stdx::Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            log_entries: 10_000,
            log_bytes: 64 * 1024 * 1024,
            log_age: Duration::from_secs(24 * 60 * 60),
            clock: Arc::new(stdx::SystemClock),
        }
    }
}

/// The database in the file at `path`, made when there is none, and its totals.
pub(crate) fn open(path: &Path) -> Result<(Database, Totals), Error> {
    let exists = path.try_exists().map_err(file_error("look for", path))?;
    if !exists {
        create(path)?;
    }
    let file =
        OpenOptions::new().read(true).write(true).open(path).map_err(file_error("open", path))?;
    file.set_permissions(Permissions::from_mode(FILE_MODE)).map_err(file_error("protect", path))?;
    let db = database(path, backend(path, file)?)?;
    let totals = prepare(path, &db)?;
    Ok((db, totals))
}

/// A new store beside `path`, moved there when it is whole: a power cut meanwhile leaves no file
/// that could be taken for a store.
fn create(path: &Path) -> Result<(), Error> {
    let fresh = PathBuf::from(format!("{}.new", path.display()));
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(file_error("remove the unfinished", &fresh)(error));
        }
        _ => {}
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(&fresh)
        .map_err(file_error("create", &fresh))?;
    let db = database(&fresh, backend(&fresh, file)?)?;
    prepare(&fresh, &db)?;
    drop(db);
    std::fs::rename(&fresh, path).map_err(file_error("put in place", path))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(file_error("sync the folder", folder))
}

/// A database over `backend`; `path` is for messages.
pub(crate) fn database(path: &Path, backend: impl StorageBackend) -> Result<Database, Error> {
    let length = backend.len().map_err(file_error("measure", path))?;
    let mut builder = Builder::new();
    builder.set_check_integrity_on_open(length <= CHECKED_BYTES);
    builder.set_cache_size(CACHE_BYTES).set_repair_callback(|repair| {
        tracing::info!(progress = repair.progress(), "repairing the store after a crash");
    });
    builder.create_with_backend(backend).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => Error::InUse { path: path.to_owned() },
        error => storage("open")(error),
    })
}

fn backend(path: &Path, file: File) -> Result<FileBackend, Error> {
    FileBackend::new(file).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => Error::InUse { path: path.to_owned() },
        error => storage("open")(error),
    })
}

/// Checks the format, brings an older one up to date, and reads the totals.
pub(crate) fn prepare(path: &Path, db: &Database) -> Result<Totals, Error> {
    let txn = begin(db)?;
    let (totals, written) = {
        let mut meta = txn.open_table(META).map_err(storage("prepare"))?;
        let objects = txn.open_table(OBJECTS).map_err(storage("prepare"))?;
        let log = txn.open_table(CHANGELOG).map_err(storage("prepare"))?;
        let number = |name| -> Result<Option<u64>, Error> {
            let value = meta.get(name).map_err(storage("prepare"))?;
            Ok(value.map(|value| value.value()))
        };
        let written = match number(META_FORMAT)? {
            Some(FORMAT) => false,
            // Older formats are brought forward here, one step for each, in this transaction.
            None if objects.is_empty().map_err(storage("prepare"))? => true,
            None => return Err(damaged("it holds objects but names no format")),
            Some(found) => {
                return Err(Error::FutureFormat { path: path.to_owned(), found, known: FORMAT });
            }
        };
        let totals = Totals {
            revision: number(META_REVISION)?.unwrap_or(0),
            floor: number(META_FLOOR)?.unwrap_or(0),
            log_bytes: number(META_LOG_BYTES)?.unwrap_or(0),
        };
        let last = log.last().map_err(storage("prepare"))?.map(|(revision, _)| revision.value());
        let rows = log.len().map_err(storage("prepare"))?;
        let expected = totals.revision.checked_sub(totals.floor);
        if expected != Some(rows) || last.is_some_and(|last| last != totals.revision) {
            return Err(damaged(format!(
                "its log has {rows} changes up to {last:?}, its totals say {totals:?}"
            )));
        }
        if written {
            meta.insert(META_FORMAT, FORMAT).map_err(storage("prepare"))?;
        }
        (totals, written)
    };
    match written {
        true => txn.commit().map_err(storage("prepare"))?,
        false => txn.abort().map_err(storage("prepare"))?,
    }
    Ok(totals)
}

fn file_error(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { attempt, path, source: Arc::new(source) }
}
