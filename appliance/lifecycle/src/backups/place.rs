//! From staged files to the box's own, whatever the power does.
//!
//! ```text
//! STATE/restore.new/…          being written: the next start removes it
//! STATE/restore/               whole and on disk: the next start goes on with it
//!   names.json                 the paths of all files that the box will have
//!   files/…                    those that are not in their place yet
//!   box.toml                   for the boot volume, if it is not there yet
//! STATE/restore.done/…         all is in its place: to be removed
//! STATE/unrestored.toml        box.toml that the boot volume did not take: each start tries again
//! ```
//!
//! Between the three there are only renames of a folder, which happen or do not. A start that is
//! cut goes on at the next: each step may be done twice.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::gather;

/// While it is written.
pub const UNFINISHED: &str = "restore.new";
/// The files of the state folder.
pub const FILES: &str = "files";
/// Their paths.
pub const NAMES: &str = "names.json";
/// What the owner wrote.
pub const SETTINGS: &str = "box.toml";

/// The settings of a backup that are not in force.
pub const LEFT: &str = "unrestored.toml";

const WHOLE: &str = "restore";
const DONE: &str = "restore.done";
/// Stays, where the backup has none: a box that has an owner is nobody else's by a restore.
const OWNER: &str = "owner.json";

/// The staged folder takes the place that the next start looks at.
pub fn commit(staged: &Path, state: &Path) -> io::Result<()> {
    fs::rename(staged, state.join(WHOLE))?;
    File::open(state)?.sync_all()
}

/// Goes on with a restore that a power cut or its own restart stopped, before anybody reads a file
/// of the state folder; `settings` takes what is to be on the boot volume. Answers whether there
/// was one.
///
/// # Errors
/// The disk's; the next start goes on.
pub fn resume(state: &Path, settings: impl FnOnce(&str) -> io::Result<()>) -> io::Result<bool> {
    steps(state, settings, &mut || Ok(()))
}

/// `next` is asked before every step, and may stop it as a power cut would.
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
    // What the old box gave out is not known to the new one.
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

/// Puts the settings of a backup on the boot volume. A volume that refuses them stops nothing, and
/// the only copy stays for the next start.
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
            eprintln!("error: box.toml of the backup is not on the boot volume: {error}");
            Ok(())
        }
    }
}

/// A sentence about settings of a backup that are not in force.
pub fn unrestored(state: &Path) -> Option<String> {
    let left = state.join(LEFT);
    left.exists().then(|| {
        "the settings of the restored backup are not in force: the boot volume did not take them. \
         Each start tries again; look at the volume TINBOX, or set them by hand"
            .to_owned()
    })
}

fn put(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    fs::rename(from, to)?;
    File::open(folder)?.sync_all()
}

/// A folder with all that is in it, if it is there.
pub fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
