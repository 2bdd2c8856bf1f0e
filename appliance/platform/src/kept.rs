//! Small files of the box, replaced durably: after a power cut there is the old one or the new one.
//!
//! Remedies need some of these files, and are needed when the disk is full. So a volume has room in
//! reserve, a file that is given up when a small file finds no room. Notes of process 1 need even
//! less: their old bytes are overwritten.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

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
    let part = folder.join(format!("{name}.part"));
    let attempt = || {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(mode).open(&part)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&part, folder.join(name))?;
        File::open(folder)?.sync_all()
    };
    // What is left of a failed attempt takes room, and helps no one.
    attempt().inspect_err(|_| drop(fs::remove_file(&part)))
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
pub(crate) fn take(folder: &Path, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
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
mod tests {
    use std::fs;

    use super::{
        RESERVE, RESERVE_BYTES, SECTOR, give_up_reserve, overwrite, replace, reserve, take,
    };

    #[test]
    fn what_is_kept_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(take(folder.path(), "it", 9).unwrap(), None);
        replace(folder.path(), "it", b"old").unwrap();
        replace(folder.path(), "it", b"new and long").unwrap();
        assert_eq!(take(folder.path(), "it", 7).unwrap().unwrap(), b"new and");
        assert_eq!(take(folder.path(), "it", 7).unwrap(), None);
    }

    #[test]
    fn a_note_that_was_taken_leaves_its_room_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note");
        replace(folder.path(), "note", b"it fell over").unwrap();
        take(folder.path(), "note", 99).unwrap();
        let overwritten = overwrite(&path, b"again, and with more words");
        overwritten.expect("a note that is blank is overwritten");
        overwrite(&path, b"short").unwrap();
        assert_eq!(take(folder.path(), "note", 99).unwrap().unwrap(), b"short");
        assert!(overwrite(&path, &[b'x'; SECTOR + 1]).is_err(), "no disk writes that whole");
        assert!(overwrite(&folder.path().join("none"), b"x").is_err());
    }

    #[test]
    fn the_reserve_is_made_once_and_given_up_once() {
        let folder = tempfile::tempdir().unwrap();
        let (path, below) = (folder.path().join(RESERVE), folder.path().join("tinbox/settings"));
        fs::create_dir_all(&below).unwrap();
        for _ in 0..2 {
            reserve(folder.path()).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().len(), RESERVE_BYTES);
        }
        assert!(give_up_reserve(&below));
        assert!(!path.exists() && !give_up_reserve(&below));
    }
}
