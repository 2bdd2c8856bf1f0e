//! Opening of the store file. Creation is atomic; the file is readable only by its owner, and its
//! format is checked.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{
    Builder, Database, DatabaseError, ReadableDatabase as _, ReadableTable, ReadableTableMetadata,
    StorageBackend, Table, TableError,
};

use super::{aside, file_error, migrate, sync_folder};
use crate::error::{damaged, storage};
use crate::free_space::{self, Volume};
use crate::tables::{
    CHANGELOG, FORMAT, META, META_FLOOR, META_FORMAT, META_LOG_BYTES, META_REVISION,
    META_SEALED_BY, OBJECTS,
};
use crate::transaction::{Totals, begin};
use crate::vault::{SealingKey, Vault};
use crate::{Error, Options};

/// Size of redb's page cache in bytes, enough for all objects of a rack. Also limits the memory of
/// a repair.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// Files up to this size are checked page by page whenever they are opened (about 0.3 ms a
/// mebibyte), since redb may panic on pages that a failing disk has changed.
const CHECKED_BYTES: u64 = 256 * 1024 * 1024;

/// Offset of redb's flags; the second bit of this byte is set while the file is open for writing
/// (redb's design document: the god byte follows 9 bytes of magic).
const FLAGS_AT: u64 = 9;
const RECOVERY_REQUIRED: u8 = 2;

/// Mode of the store file, which holds secrets.
const FILE_MODE: u32 = 0o600;

/// Opens the database at `path`, or creates it, and reads its totals.
pub(crate) fn open(path: &Path, options: &Options) -> Result<(Database, Totals), Error> {
    let vault = &options.vault();
    let exists = path.try_exists().map_err(file_error("look for", path))?;
    if !exists {
        create(path, vault)?;
    }
    let mut db = database_in(path)?;
    if let Some(found) = meta_of(&db, META_FORMAT)?.filter(|found| *found > FORMAT) {
        let revision = meta_of(&db, META_REVISION).ok().flatten();
        drop(db);
        aside::go_back(path, (found, revision))?;
        db = database_in(path)?;
    }
    forward(path, db, vault, Before::Kept(&*options.volume))
}

/// Opens the store file at `path`, which must exist. Does not keep a copy before a migration.
pub(crate) fn existing(path: &Path, vault: &Vault) -> Result<(Database, Totals), Error> {
    let db = database_in(path)?;
    forward(path, db, vault, Before::Dropped)
}

/// Handling of the old file in a migration.
#[derive(Clone, Copy)]
enum Before<'a> {
    /// Keeps a copy of the file for a rollback to the earlier release (UP-6).
    Kept(&'a dyn Volume),
    /// Discards the old file, because it is a temporary copy.
    Dropped,
}

fn forward(
    path: &Path,
    mut db: Database,
    vault: &Vault,
    before: Before<'_>,
) -> Result<(Database, Totals), Error> {
    match meta_of(&db, META_FORMAT)? {
        Some(1) => {
            let fresh = unfinished(path)?;
            if let Before::Kept(volume) = before {
                free_space::for_a_copy(path, &mut db, volume)?;
            }
            bring_forward(&db, &fresh, vault)?;
            drop(db);
            if let Before::Kept(_) = before {
                aside::keep(path, 1)?;
            }
            settle(&fresh, path)?;
            tracing::info!(from = 1, to = FORMAT, "the store was converted to the new format");
            db = database_in(path)?;
        }
        Some(_) => {}
        None => return Err(damaged("the file is not a store")),
    }
    let totals = prepare(path, &db, vault)?;
    Ok((db, totals))
}

fn database_in(path: &Path) -> Result<Database, Error> {
    let file =
        OpenOptions::new().read(true).write(true).open(path).map_err(file_error("open", path))?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))
        .map_err(file_error("set the permissions of", path))?;
    // redb would create a database in an empty file.
    if file.metadata().map_err(file_error("read the size of", path))?.len() == 0 {
        return Err(damaged("its file is empty"));
    }
    database(path, backend(path, file)?)
}

/// Reads a number of the `meta` table before this release writes to the table.
fn meta_of(db: &Database, name: &str) -> Result<Option<u64>, Error> {
    let txn = db.begin_read().map_err(storage("open"))?;
    match txn.open_table(META) {
        Ok(meta) => number(&meta, name),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(storage("open")(error)),
    }
}

/// Converts the store `old` of an earlier release to this release's format, in a new file `fresh`.
fn bring_forward(old: &Database, fresh: &Path, vault: &Vault) -> Result<(), Error> {
    let from = old.begin_read().map_err(storage("migrate"))?;
    let db = fresh_database(fresh)?;
    let to = begin(&db)?;
    migrate::to_blobs(&from, &to, vault)?;
    to.commit().map_err(storage("migrate"))
}

/// Creates a new store beside `path` and renames it when complete. A power cut before the rename
/// leaves no file that looks like a store.
fn create(path: &Path, vault: &Vault) -> Result<(), Error> {
    let fresh = unfinished(path)?;
    let db = fresh_database(&fresh)?;
    prepare(&fresh, &db, vault)?;
    drop(db);
    settle(&fresh, path)
}

/// Creates a database in a new file at `path`, readable only by its owner.
pub(crate) fn fresh_database(path: &Path) -> Result<Database, Error> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)
        .map_err(file_error("create", path))?;
    database(path, backend(path, file)?)
}

/// Returns the temporary name `PATH.new` for an incomplete file. Removes an older file with this
/// name.
pub(crate) fn unfinished(path: &Path) -> Result<PathBuf, Error> {
    let fresh = PathBuf::from(format!("{}.new", path.display()));
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(file_error("remove the unfinished", &fresh)(error))
        }
        _ => Ok(fresh),
    }
}

/// Renames a complete file to its final path, durably.
pub(crate) fn settle(fresh: &Path, path: &Path) -> Result<(), Error> {
    std::fs::rename(fresh, path).map_err(file_error("put in place", path))?;
    sync_folder(path)
}

/// Opens a database over `backend`; `path` is for error messages.
pub(crate) fn database(path: &Path, backend: impl StorageBackend) -> Result<Database, Error> {
    let length = backend.len().map_err(file_error("read the size of", path))?;
    let mut builder = Builder::new();
    builder.set_check_integrity_on_open(length <= CHECKED_BYTES).set_cache_size(CACHE_BYTES);
    if was_left_open(&backend, length).map_err(file_error("read", path))? {
        tracing::info!(path = %path.display(), "repairing the store after a crash");
    }
    // redb calls this for every check, not only for a repair.
    builder.set_repair_callback(|check| {
        tracing::debug!(progress = check.progress(), "checking the store");
    });
    builder.create_with_backend(backend).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => Error::InUse { path: path.to_owned() },
        error => storage("open")(error),
    })
}

/// Returns true if a crash or a power cut left the file open. `length` is its length in bytes.
pub(crate) fn was_left_open(backend: &impl StorageBackend, length: u64) -> io::Result<bool> {
    let mut flags = [0];
    if length > FLAGS_AT {
        backend.read(FLAGS_AT, &mut flags)?;
    }
    Ok(flags[0] & RECOVERY_REQUIRED != 0)
}

fn backend(path: &Path, file: File) -> Result<FileBackend, Error> {
    FileBackend::new(file).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => Error::InUse { path: path.to_owned() },
        error => storage("open")(error),
    })
}

/// Checks the format, writes it if the store is new, and reads the totals.
pub(crate) fn prepare(path: &Path, db: &Database, vault: &Vault) -> Result<Totals, Error> {
    let txn = begin(db)?;
    let (totals, written) = {
        let mut meta = txn.open_table(META).map_err(storage("prepare"))?;
        let objects = txn.open_table(OBJECTS).map_err(storage("prepare"))?;
        let log = txn.open_table(CHANGELOG).map_err(storage("prepare"))?;
        let sealed = check_key(path, &mut meta, vault)?;
        let written = match number(&meta, META_FORMAT)? {
            Some(FORMAT) => sealed,
            None if objects.is_empty().map_err(storage("prepare"))? => true,
            None => return Err(damaged("it has objects but no format")),
            Some(found) => {
                return Err(Error::FutureFormat { path: path.to_owned(), found, known: FORMAT });
            }
        };
        if written {
            meta.insert(META_FORMAT, FORMAT).map_err(storage("prepare"))?;
        }
        (totals(&meta, &log)?, written)
    };
    match written {
        true => txn.commit().map_err(storage("prepare"))?,
        false => txn.abort().map_err(storage("prepare"))?,
    }
    Ok(totals)
}

type Meta<'txn> = Table<'txn, &'static str, u64>;

fn number(meta: &impl ReadableTable<&'static str, u64>, name: &str) -> Result<Option<u64>, Error> {
    let value = meta.get(name).map_err(storage("prepare"))?;
    Ok(value.map(|value| value.value()))
}

/// Checks that the store was encrypted with the key of `vault`. Returns true if the store had no
/// fingerprint of a key and this call wrote it.
fn check_key(path: &Path, meta: &mut Meta<'_>, vault: &Vault) -> Result<bool, Error> {
    let given = vault.key.as_ref().map(SealingKey::fingerprint);
    match (number(meta, META_SEALED_BY)?, given) {
        (None, Some(given)) => {
            meta.insert(META_SEALED_BY, given).map_err(storage("prepare"))?;
            Ok(true)
        }
        (Some(noted), given) if given != Some(noted) => {
            Err(Error::WrongKey { path: path.to_owned() })
        }
        _ => Ok(false),
    }
}

/// Reads the totals and checks them against the log.
fn totals(meta: &Meta<'_>, log: &Table<'_, u64, &'static [u8]>) -> Result<Totals, Error> {
    let totals = Totals {
        revision: number(meta, META_REVISION)?.unwrap_or(0),
        floor: number(meta, META_FLOOR)?.unwrap_or(0),
        log_bytes: number(meta, META_LOG_BYTES)?.unwrap_or(0),
    };
    let last = log.last().map_err(storage("prepare"))?.map(|(revision, _)| revision.value());
    let rows = log.len().map_err(storage("prepare"))?;
    let expected = totals.revision.checked_sub(totals.floor);
    if expected != Some(rows) || last.is_some_and(|last| last != totals.revision) {
        return Err(damaged(format!(
            "its log has {rows} changes up to {last:?}, its totals are {totals:?}"
        )));
    }
    Ok(totals)
}
