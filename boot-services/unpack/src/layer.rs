//! Unpacks a layer of a container image. A layer has entries, and whiteouts, which remove entries
//! of lower layers (OCI image specification, "Whiteouts").
//!
//! `.wh.<name>` removes `<name>`, and `.wh..wh..opq` removes everything in its folder. Entries of
//! the same layer are never removed, before or after the whiteout.

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
/// Prefix of special whiteouts. [`OPAQUE`] is the only supported name; others are ignored.
const OF_FOLDER: &[u8] = b".wh..wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Maximum nesting depth of removed folders, because the removal keeps a descriptor open for each
/// level.
const DEPTH: usize = 256;

/// Entries that the current layer has created.
#[derive(Default)]
pub(super) struct Layer {
    /// Created paths, in the form of [`joined`], with all parent folders. The filesystem limits
    /// their number, because each path exists as a file.
    made: BTreeSet<Vec<u8>>,
}

/// Kind of an entry, from its name: ordinary or whiteout.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mark<'a> {
    /// Ordinary entry, without the prefix `.wh.`.
    None,
    /// Whiteout that removes the entry with this name.
    Gone(&'a OsStr),
    /// Opaque whiteout, which removes the lower layers' content of its folder.
    Opaque,
    /// Special whiteout of another storage driver; ignored.
    Foreign,
}

/// Determines the kind of an entry from the last part of its path.
pub(super) fn mark(name: &OsStr) -> io::Result<Mark<'_>> {
    let bytes = name.as_bytes();
    let Some(gone) = bytes.strip_prefix(WHITEOUT) else { return Ok(Mark::None) };
    match gone {
        _ if bytes == OPAQUE => Ok(Mark::Opaque),
        _ if bytes.starts_with(OF_FOLDER) => Ok(Mark::Foreign),
        b"" | b"." | b".." => Err(refuse("it is a whiteout without a name")),
        _ => Ok(Mark::Gone(OsStr::from_bytes(gone))),
    }
}

impl Layer {
    /// Creates an entry, or applies a whiteout. Returns the size of a file in bytes, else 0.
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

    /// Removes everything in the folder at `path`, except for entries of this layer.
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
                let depth = depth.checked_sub(1).ok_or_else(|| refuse("it is nested too deep"))?;
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

/// Removes an existing entry that creating the new entry would not replace: a folder, if the new
/// entry is not a folder; a symbolic link, if the new entry is a folder.
fn give_way(folder: &File, name: &OsStr, kind: EntryType) -> io::Result<()> {
    match (kind_of(folder, name)?, kind == EntryType::Directory) {
        (Some(FileType::Directory), false) => Layer::default().remove(folder, b".", name, DEPTH),
        (Some(FileType::Symlink), true) => {
            Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
        }
        _ => Ok(()),
    }
}

/// Opens the folder at `path` beneath the root; `None` if the folder does not exist.
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

/// Lists the names in a folder. The list is complete before any removal, because readdir is not
/// reliable while the folder changes.
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
