//! Files of the store: opening, migration, and copies in other formats.

pub mod aside;
mod migrate;
pub mod open;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::Error;

/// Syncs the folder of `path`, so that created and renamed files survive a power cut.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(file_error("sync the folder", folder))
}

/// Returns a function that converts an I/O error; `attempt` is the failed operation, as a verb.
pub(crate) fn file_error(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { attempt, path, source: Arc::new(source) }
}
