//! Files of other formats beside the store, for updates and rollbacks of the box (UP-6).
//!
//! ```text
//! STORE.format-N       the store as it was before a release with a newer format took it over
//! STORE.newer-N-R      a store of format N at revision R, set aside when the release before came
//!                      back, which cannot read it
//! ```
//!
//! Both names are fixed, because a rollback starts an earlier release, which must find the copy
//! that the later release made.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{file_error, sync_folder};
use crate::Error;
use crate::tables::FORMAT;

/// Text between the store's name and the format number in the name of a copy.
const COPY: &str = ".format-";
/// Text between the store's name and the format and revision, in the name of a store set aside.
const NEWER: &str = ".newer-";
/// Maximum number of stores that are kept aside; the oldest are removed.
pub(crate) const ASIDE_MAX: usize = 3;

/// Store of a newer format that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewerStore {
    /// Path of the file.
    pub file: PathBuf,
    /// Format version of the file.
    pub format: u64,
    /// Last revision of the file; `None` if it cannot be read. Revisions above the copy's exist
    /// only in this file.
    pub revision: Option<u64>,
}

fn named(path: &Path, mark: &str, rest: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(mark);
    name.push(rest);
    name.into()
}

/// Creates a copy of the store at `path`, which has the format `format` and is not open. The copy
/// is named `STORE.format-N`.
pub(crate) fn keep(path: &Path, format: u64) -> Result<(), Error> {
    let copy = named(path, COPY, &format.to_string());
    match std::fs::remove_file(&copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(file_error("replace", &copy)(error));
        }
        _ => {}
    }
    // A hard link is enough: the migration puts another file in the store's place.
    if std::fs::hard_link(path, &copy).is_err() {
        copied(path, &copy).map_err(file_error("copy the store to", &copy))?;
    }
    sync_folder(path)
}

/// Copies the file, on file systems without hard links. An incomplete copy keeps the name `.part`.
fn copied(path: &Path, copy: &Path) -> io::Result<()> {
    let part = named(copy, ".part", "");
    std::fs::copy(path, &part)?;
    let file = std::fs::File::open(&part)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.sync_all()?;
    std::fs::rename(&part, copy)
}

/// Replaces the store at `path` by the newest copy that this release can read. The replaced store
/// has the format and revision of `newer`, must not be open, and is set aside.
pub(crate) fn go_back(path: &Path, newer: (u64, Option<u64>)) -> Result<(), Error> {
    let (found, revision) = newer;
    let copies = (1..=FORMAT).rev().map(|format| named(path, COPY, &format.to_string()));
    let Some(copy) = copies.into_iter().find(|copy| copy.is_file()) else {
        return Err(Error::FutureFormat { path: path.to_owned(), found, known: FORMAT });
    };
    let revision = revision.map_or("unknown".to_owned(), |revision| revision.to_string());
    let aside = named(path, NEWER, &format!("{found}-{revision}"));
    // A hard link first: after a power cut between the two steps, the newer store is still in its
    // place. The next start then begins again.
    match std::fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(file_error("replace", &aside)(error));
        }
        _ => {}
    }
    if std::fs::hard_link(path, &aside).is_err() {
        copied(path, &aside).map_err(file_error("set the store aside as", &aside))?;
    }
    sync_folder(path)?;
    std::fs::rename(&copy, path).map_err(file_error("put the store back from", &copy))?;
    sync_folder(path)?;
    let (aside, format) = (aside.display(), found);
    for old in returned(path)?.into_iter().rev().skip(ASIDE_MAX) {
        std::fs::remove_file(&old.file).map_err(file_error("remove", &old.file))?;
    }
    tracing::warn!(
        %aside, format, revision,
        "the store of a later release was set aside; the one from before its update is back"
    );
    Ok(())
}

/// Returns the stores of newer formats beside the store at `path`, the newest last.
///
/// # Errors
/// The folder cannot be read.
pub fn returned(path: &Path) -> Result<Vec<NewerStore>, Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(file_error("read the folder", folder))? {
        let entry = entry.map_err(file_error("read the folder", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = name.strip_prefix(&own).and_then(|rest| rest.strip_prefix(NEWER));
        let Some((format, revision)) = rest.and_then(|rest| rest.split_once('-')) else { continue };
        let Ok(format) = format.parse::<u64>() else { continue };
        // A store that this release can read is not of a newer format.
        if format > FORMAT {
            let revision = revision.parse().ok();
            found.push(NewerStore { file: entry.path(), format, revision });
        }
    }
    found.sort_by_key(|one| (one.format, one.revision));
    Ok(found)
}

/// Removes the copies of the store at `path` for earlier releases, because the box cannot roll back
/// to these releases any more.
///
/// # Errors
/// A copy cannot be removed, or the folder cannot be synced.
pub fn forget_copy(path: &Path) -> Result<(), Error> {
    for format in 1..FORMAT {
        let copy = named(path, COPY, &format.to_string());
        match std::fs::remove_file(&copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(file_error("remove", &copy)(error));
            }
            _ => {}
        }
    }
    sync_folder(path)
}
