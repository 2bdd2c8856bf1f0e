//! Small files of the box, replaced durably: after a power cut there is the old one or the new one.
//!
//! Never: interprets the content of a file, follows a leftover of an interrupted write, which may
//! have another mode or be a link.
//!
//! Enter at [`replace`], [`replace_private`] and [`read`].
//!
//! Remedies need some of these files, and are needed when the disk is full. So a volume has room in
//! reserve, a file that is given up when a small file finds no room. Notes of process 1 need even
//! less: their old bytes are overwritten.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use stdx::is_full;

/// The file that holds a volume's reserve, in its root.
pub const RESERVE: &str = "small-files.reserve";
/// Bytes in reserve: the largest of the files (the settings, the kernel's last lines), twice.
const RESERVE_BYTES: u64 = 512 << 10;
/// Folders between a small file and its volume's root.
const DEPTH_MAX: usize = 4;
/// Bytes that a disk writes whole or not at all.
const SECTOR: usize = 512;

/// Writes `content` to `folder/name`. A note of at most a sector that finds no room is written over
/// the old one.
///
/// # Errors
/// Those of the file system; the old file is then as it was.
pub fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    match replace_with_mode(folder, name, content, 0o644) {
        Err(error) if is_full(&error) => overwrite(&folder.join(name), content).map_err(|_| error),
        written => written,
    }
}

/// Writes `content` to `folder/name`, which only the box may read.
///
/// # Errors
/// Those of the file system; the old file is then as it was.
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
    // What is left of a failed attempt takes room, and helps no one.
    written.inspect_err(|_| drop(fs::remove_file(&part)))
}

/// The name of the new file until it is whole.
fn part_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.part"))
}

/// A step of a replacement. A power cut may come before each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    RemoveLeftover,
    Write,
    Sync,
    Rename,
    SyncFolder,
}

/// Writes `part`, and puts it in the place of `path`; `before` is called before each step, and ends
/// the attempt by an error.
fn attempt(
    part: &Path,
    path: &Path,
    content: &[u8],
    mode: u32,
    mut before: impl FnMut(Step) -> io::Result<()>,
) -> io::Result<()> {
    before(Step::RemoveLeftover)?;
    // Its mode would stay.
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

/// Writes a note over the old one, which keeps its blocks; line ends fill what is longer.
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

/// Sets room aside on the volume whose root is `root`, where it is not yet.
///
/// # Errors
/// There is no room for it, or the volume cannot be written.
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

/// Gives up the reserve of the volume of `folder`; false when it has none any more.
fn give_up_reserve(folder: &Path) -> bool {
    let mut roots = folder.ancestors().take(DEPTH_MAX);
    // The room is free once the removal is on the disk.
    roots.any(|root| {
        fs::remove_file(root.join(RESERVE)).is_ok()
            && File::open(root).and_then(|root| root.sync_all()).is_ok()
    })
}

/// Reads at most `limit` bytes of a file; `None` when there is none.
///
/// # Errors
/// Those of the file system.
pub fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut content = Vec::new();
    file.take(limit).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// Reads the note `folder/name`, at most `limit` bytes of it, and blanks it. A blank note is none,
/// and holds the room for the next one.
///
/// # Errors
/// Those of the file system.
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
