//! A layer of a container's image: its entries, and the marks by which it takes away what the
//! layers below it have (OCI image specification, "Whiteouts").
//!
//! `.wh.<name>` takes `<name>` away, `.wh..wh..opq` all that is in its folder; neither what the
//! same layer brings, before or after it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use tar::EntryType;

use super::reader::{Entry, Times};
use super::{Root, beneath, joined, make, parts, refuse};

const WHITEOUT: &[u8] = b".wh.";
/// Marks for the whole folder begin like this; those but [`OPAQUE`] are another filesystem's own.
const OF_FOLDER: &[u8] = b".wh..wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Folders in folders that are taken away; each has a descriptor open meanwhile.
const DEPTH: usize = 256;

/// What one layer has made so far.
#[derive(Default)]
pub(super) struct Layer {
    /// Paths as [`joined`] has them, with all folders above. As many as the filesystem has room
    /// for, for each is a name in it.
    made: BTreeSet<Vec<u8>>,
}

/// What an entry's name says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mark<'a> {
    /// It is an entry as any.
    None,
    /// This name goes.
    Gone(&'a OsStr),
    /// All of its folder goes.
    Opaque,
    /// Nothing that matters here.
    Foreign,
}

/// Reads the last part of an entry's name.
pub(super) fn mark(name: &OsStr) -> io::Result<Mark<'_>> {
    let bytes = name.as_bytes();
    let Some(gone) = bytes.strip_prefix(WHITEOUT) else { return Ok(Mark::None) };
    match gone {
        _ if bytes == OPAQUE => Ok(Mark::Opaque),
        _ if bytes.starts_with(OF_FOLDER) => Ok(Mark::Foreign),
        b"" | b"." | b".." => Err(refuse("it takes away what has no name")),
        _ => Ok(Mark::Gone(OsStr::from_bytes(gone))),
    }
}

impl Layer {
    /// Make one entry, or take away what it marks; the bytes of a file.
    pub(super) fn take(
        &mut self,
        entry: &Entry,
        contents: &mut dyn Read,
        root: &Root<'_>,
        folders: &mut Vec<(Vec<u8>, Times)>,
    ) -> io::Result<u64> {
        let parts = parts(&entry.name)?;
        let Some((last, above)) = parts.split_last() else { return Ok(0) };
        match mark(last)? {
            Mark::None => {}
            Mark::Foreign => return Ok(0),
            mark => return self.take_away(&mark, above, root).map(|()| 0),
        }
        if let Some(folder) = existing(root, &joined(above))? {
            give_way(&folder, last, entry.kind)?;
        }
        let bytes = make(entry, contents, root, folders)?;
        for length in 1..=parts.len() {
            self.made.insert(joined(&parts[..length]));
        }
        Ok(bytes)
    }

    fn take_away(&self, mark: &Mark<'_>, above: &[&OsStr], root: &Root<'_>) -> io::Result<()> {
        let path = joined(above);
        let Some(folder) = existing(root, &path)? else { return Ok(()) };
        match mark {
            Mark::Gone(name) => self.remove(&folder, &path, name, DEPTH),
            _ => self.empty(&folder, &path, DEPTH),
        }
    }

    /// Remove what is in the folder at `path` but what this layer made.
    fn empty(&self, folder: &File, path: &[u8], depth: usize) -> io::Result<()> {
        for name in names(folder)? {
            self.remove(folder, path, OsStr::from_bytes(&name), depth)?;
        }
        Ok(())
    }

    fn remove(&self, folder: &File, path: &[u8], name: &OsStr, depth: usize) -> io::Result<()> {
        let path = [path, b"/", name.as_bytes()].concat();
        let is_ours = self.made.contains(&path);
        match kind_of(folder, name)? {
            None => return Ok(()),
            Some(FileType::Directory) => {
                let depth = depth.checked_sub(1).ok_or_else(|| refuse("it is too deep"))?;
                self.empty(&open_folder(folder, name)?, &path, depth)?;
                if !is_ours {
                    rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?;
                }
            }
            Some(_) if is_ours => {}
            Some(_) => rustix::fs::unlinkat(folder, name, AtFlags::empty())?,
        }
        Ok(())
    }
}

/// Remove what a new entry cannot replace by itself: a folder in the way of something else, a link
/// in the way of a folder.
fn give_way(folder: &File, name: &OsStr, kind: EntryType) -> io::Result<()> {
    match (kind_of(folder, name)?, kind == EntryType::Directory) {
        (Some(FileType::Directory), false) => Layer::default().remove(folder, b".", name, DEPTH),
        (Some(FileType::Symlink), true) => {
            Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
        }
        _ => Ok(()),
    }
}

/// The folder at a path, if it is there.
fn existing(root: &Root<'_>, path: &[u8]) -> io::Result<Option<File>> {
    match beneath(root, path, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(folder) => Ok(Some(folder)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn kind_of(folder: &File, name: &OsStr) -> io::Result<Option<FileType>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn open_folder(folder: &File, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?))
}

/// Read before anything is removed: a folder that changes may be read wrongly.
fn names(folder: &File) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
