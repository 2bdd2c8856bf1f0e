//! Small files of the box, replaced durably: after a power cut, the complete old file or the
//! complete new file exists.
//!
//! Never: interprets the content of a file. Never reuses the leftover of an interrupted write,
//! which may have another mode or be a link.
//!
//! Enter at [`replace`], [`replace_private`] and [`read`].
//!
//! Some files must be written even on a full disk. Each volume therefore has a reserve: a file that
//! is deleted when a small file lacks disk space. Notes of at most one sector need no space,
//! because the new bytes overwrite the old ones.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use stdx::is_full;

/// Name of the file with a volume's reserve, in the root of the volume.
pub const RESERVE: &str = "small-files.reserve";
/// Size of the reserve in bytes: twice the largest small file (the settings, the kernel's last
/// lines).
const RESERVE_BYTES: u64 = 512 << 10;
/// Number of folders, from a small file upward, that are searched for the reserve.
const DEPTH_MAX: usize = 4;
/// Bytes of a sector, which a disk writes completely or not at all.
const SECTOR: usize = 512;

/// Writes `content` to `folder/name` with mode 0644. On a full disk, a note of at most one sector
/// overwrites the old note in place.
///
/// # Errors
/// The file system refused the write; the old file is unchanged.
pub fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    match replace_with_mode(folder, name, content, 0o644) {
        Err(error) if is_full(&error) => overwrite(&folder.join(name), content).map_err(|_| error),
        written => written,
    }
}

/// Writes `content` to `folder/name` with mode 0600.
///
/// # Errors
/// The file system refused the write; the old file is unchanged.
pub fn replace_private(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    replace_with_mode(folder, name, content, 0o600)
}

fn replace_with_mode(folder: &Path, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
    match write(folder, name, content, mode) {
        Err(error) if is_full(&error) && give_up_reserve(folder) => {
            write(folder, name, content, mode)
        }
        written => written,
    }
}

fn write(folder: &Path, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
    let part = part_of(folder, name);
    let written = attempt(&part, &folder.join(name), content, mode, |_| Ok(()));
    // The leftover of a failed attempt uses disk space and is not needed.
    written.inspect_err(|_| drop(fs::remove_file(&part)))
}

/// Returns the temporary path of the new file.
fn part_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.part"))
}

/// Step of a replacement. A power cut may come before each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    RemoveLeftover,
    Write,
    Sync,
    Rename,
    SyncFolder,
}

/// Writes `part`, and renames it to `path`. `before` is called before each step. An error of
/// `before` stops the attempt.
fn attempt(
    part: &Path,
    path: &Path,
    content: &[u8],
    mode: u32,
    mut before: impl FnMut(Step) -> io::Result<()>,
) -> io::Result<()> {
    before(Step::RemoveLeftover)?;
    // An existing file would keep its mode.
    match fs::remove_file(part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    before(Step::Write)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(part)?;
    file.write_all(content)?;
    before(Step::Sync)?;
    file.sync_all()?;
    before(Step::Rename)?;
    fs::rename(part, path)?;
    before(Step::SyncFolder)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Overwrites a note of at most one sector in place, so that the file keeps its disk blocks. Line
/// feeds fill the rest of a longer old note.
fn overwrite(path: &Path, content: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let old = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if old == 0 || old > SECTOR || content.len() > SECTOR {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let mut bytes = content.to_vec();
    bytes.resize(old.max(content.len()), b'\n');
    file.write_all_at(&bytes, 0)?;
    file.sync_all()
}

/// Creates the reserve of the volume mounted at `root`, if the reserve is missing.
///
/// # Errors
/// The volume lacks disk space, or cannot be written.
pub fn reserve(root: &Path) -> io::Result<()> {
    let path = root.join(RESERVE);
    if fs::metadata(&path).is_ok_and(|data| data.len() == RESERVE_BYTES) {
        return Ok(());
    }
    let attempt = || {
        let file = File::create(&path)?;
        fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES)?;
        file.sync_all()?;
        File::open(root)?.sync_all()
    };
    attempt().inspect_err(|_| drop(fs::remove_file(&path)))
}

/// Deletes the reserve of the volume of `folder`. Returns false if the volume has no reserve.
fn give_up_reserve(folder: &Path) -> bool {
    let mut roots = folder.ancestors().take(DEPTH_MAX);
    // The space is free after the removal is on the disk.
    roots.any(|root| {
        fs::remove_file(root.join(RESERVE)).is_ok()
            && File::open(root).and_then(|root| root.sync_all()).is_ok()
    })
}

/// Reads at most `limit` bytes of a file. Returns `None` if the file does not exist.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut content = Vec::new();
    file.take(limit).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// Reads at most `limit` bytes of the note `folder/name`, and blanks the note. Returns `None` for a
/// blank or missing note. A blank note keeps its disk space for the next note.
///
/// # Errors
/// The note cannot be read or written.
pub fn take(folder: &Path, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let path = folder.join(name);
    let content = read(&path, limit)?.unwrap_or_default();
    if content.is_empty() {
        replace(folder, name, b"\n")?;
    } else if !content.trim_ascii().is_empty() {
        overwrite(&path, b"\n").or_else(|_| replace(folder, name, b"\n"))?;
    }
    let content = content.trim_ascii_end();
    Ok((!content.is_empty()).then(|| content.to_vec()))
}

#[cfg(test)]
mod tests;
