//! Moves restored files to their places. A power cut at any step does no damage.
//!
//! ```text
//! STATE/restore.new/…          being written: the next start removes it
//! STATE/restore/               complete and on disk: the next start continues with it
//!   names.json                 the paths of all files that the box will have
//!   files/…                    files that are not in their final place yet
//!   box.toml                   for the boot volume, if it is not there yet
//! STATE/restore.done/…         all files are in place: this folder is to be removed
//! STATE/unrestored.toml        box.toml that the boot volume refused: each start tries again
//! ```
//!
//! A folder changes from one of the three states to the next by a rename, which is atomic. The next
//! start continues after a power cut: each step may run twice.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::gather;

/// Folder in the state folder for a restore that is not complete yet.
pub const UNFINISHED: &str = "restore.new";
/// Folder of the restored state files, in the folder of a restore.
pub const FILES: &str = "files";
/// File in the folder of a restore: JSON list of the paths of all restored state files.
pub const NAMES: &str = "names.json";
/// File in the folder of a restore: settings for the boot volume.
pub const SETTINGS: &str = "box.toml";

/// Settings of a restored backup that the boot volume did not accept.
pub const LEFT: &str = "unrestored.toml";

const WHOLE: &str = "restore";
const DONE: &str = "restore.done";
/// File that a restore keeps even if the backup lacks it. A restore must not remove the owner.
const OWNER: &str = "owner.json";

/// Renames the staged folder to the name that the next start continues with.
pub fn commit(staged: &Path, state: &Path) -> io::Result<()> {
    fs::rename(staged, state.join(WHOLE))?;
    File::open(state)?.sync_all()
}

/// Continues a restore after its restart or a power cut. Must run before any state file is read.
/// `settings` writes a text to the boot volume. Returns true if there was a restore.
///
/// # Errors
/// A file operation failed. The next start continues.
pub fn resume(state: &Path, settings: impl FnOnce(&str) -> io::Result<()>) -> io::Result<bool> {
    steps(state, settings, &mut || Ok(()))
}

/// Runs the steps of a restore. An error of `next`, called before each step, stops the restore.
pub(super) fn steps(
    state: &Path,
    settings: impl FnOnce(&str) -> io::Result<()>,
    next: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<bool> {
    for folder in [UNFINISHED, DONE] {
        next()?;
        remove(&state.join(folder))?;
    }
    let whole = state.join(WHOLE);
    if !whole.exists() {
        return put_settings(&state.join(LEFT), settings, next).map(|()| false);
    }
    let names: Vec<String> = serde_json::from_slice(&fs::read(whole.join(NAMES))?)?;
    for path in gather::files(state)? {
        if !names.contains(&path) && path != OWNER {
            next()?;
            fs::remove_file(state.join(&path))?;
        }
    }
    // The restored state does not know the leases of this box, so they are removed.
    for entry in fs::read_dir(state)? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        let leases = name.starts_with(gather::LEASES.0) && name.ends_with(gather::LEASES.1);
        if leases && !names.contains(&name) {
            next()?;
            fs::remove_file(state.join(&name))?;
        }
    }
    for name in &names {
        let (from, to) = (whole.join(FILES).join(name), state.join(name));
        if from.exists() {
            next()?;
            put(&from, &to)?;
        }
    }
    next()?;
    File::open(state)?.sync_all()?;
    if whole.join(SETTINGS).exists() {
        next()?;
        put(&whole.join(SETTINGS), &state.join(LEFT))?;
    }
    put_settings(&state.join(LEFT), settings, next)?;
    next()?;
    fs::rename(&whole, state.join(DONE))?;
    File::open(state)?.sync_all()?;
    next()?;
    remove(&state.join(DONE))?;
    Ok(true)
}

/// Writes the settings of a backup to the boot volume. If the volume refuses the settings, the
/// start continues, and the file `left` stays for the next start.
fn put_settings(
    left: &Path,
    settings: impl FnOnce(&str) -> io::Result<()>,
    next: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let text = match fs::read_to_string(left) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    next()?;
    match settings(&text) {
        Ok(()) => {
            next()?;
            fs::remove_file(left)
        }
        Err(error) => {
            eprintln!("error: cannot write box.toml of the backup to the boot volume: {error}");
            Ok(())
        }
    }
}

/// Returns a sentence if settings of a restored backup could not be written to the boot volume.
pub fn unrestored(state: &Path) -> Option<String> {
    let left = state.join(LEFT);
    left.exists().then(|| {
        "the settings of the restored backup are not effective: they cannot be written to the \
         boot volume. Each start tries again; check the volume TINBOX, or set them by hand"
            .to_owned()
    })
}

fn put(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    fs::rename(from, to)?;
    File::open(folder)?.sync_all()
}

/// Removes a folder and its contents, if it exists.
pub fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
