//! Unpacks a tar archive onto a filesystem, with owners, modes, times and extended attributes. No
//! archive can create a file outside the destination.
//!
//! A name with `..` is refused. Folders on the path of an entry are opened beneath the destination
//! (`RESOLVE_BENEATH`), so a symbolic link that leads out of the destination is refused too,
//! whether it comes from the archive or from the disk. A link within the destination is followed,
//! such as `lib -> usr/lib`. An entry replaces an existing entry of the same name; the old entry is
//! never written to.
//!
//! A layer of a container image is unpacked with the destination as root (`RESOLVE_IN_ROOT`). Links
//! are followed as in the container, and the layer may remove entries of lower layers ([`layer`]).
//!
//! Never: downloads or decompresses, decides where an archive is unpacked, trusts a name, a link or
//! a length of the archive.
//!
//! Enter at [`unpack`] (archives) and [`unpack_layer`] (layers of container images).

mod layer;
pub mod openat2;
mod reader;
mod records;
mod sparse;
#[cfg(test)]
mod tests;

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid};
use rustix::fs::{UTIME_OMIT, XattrFlags};
use rustix::io::Errno;
use tar::EntryType;

use layer::Layer;
use reader::{Archive, Entry, Times};
use records::Time;

/// Mode of parent folders for which the archive has no entry.
const MISSING_FOLDER: Mode = Mode::from_raw_mode(0o755);

/// Counters of an unpacked archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnpackSummary {
    /// Number of unpacked files, folders, links and devices.
    pub entries: u64,
    /// Total size of all files in bytes, including holes.
    pub bytes: u64,
}

/// Error of an entry that is refused or cannot be created, or of the archive.
#[derive(Debug)]
pub struct UnpackError {
    /// Name of the entry in the archive; empty if the archive itself is not readable.
    pub name: String,
    /// Error of the kernel, or the reason for the refusal.
    pub source: io::Error,
}

/// Unpacks `archive` beneath the folder `root`, and reads the archive to its end.
///
/// # Errors
/// An entry is refused or cannot be created, or the archive is damaged. Earlier entries stay.
pub fn unpack(archive: &mut dyn Read, root: &File) -> Result<UnpackSummary, UnpackError> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    run(archive, &Root { folder: root, resolve, attributes: true }, None)
}

/// Unpacks a layer of a container image over the lower layers beneath `root`. Extended attributes
/// are ignored, because no filesystem in memory supports all of them.
///
/// # Errors
/// As for [`unpack`], or a whiteout is invalid.
pub fn unpack_layer(archive: &mut dyn Read, root: &File) -> Result<UnpackSummary, UnpackError> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let root = Root { folder: root, resolve, attributes: false };
    run(archive, &root, Some(Layer::default()))
}

/// Destination folder and the rules to resolve paths beneath it.
struct Root<'a> {
    folder: &'a File,
    resolve: ResolveFlags,
    attributes: bool,
}

fn run(
    archive: &mut dyn Read,
    root: &Root<'_>,
    mut layer: Option<Layer>,
) -> Result<UnpackSummary, UnpackError> {
    let broken = |source| UnpackError { name: String::new(), source };
    let mut tar = Archive::new(archive);
    let mut done = UnpackSummary::default();
    let mut folders = Vec::new();
    while let Some(entry) = tar.next_entry()? {
        let made = match &mut layer {
            Some(layer) => layer.take(&entry, &mut tar, root, &mut folders),
            None => make(&entry, &mut tar, root, &mut folders),
        };
        let name = || String::from_utf8_lossy(&entry.name).into_owned();
        done.bytes += made.map_err(|source| UnpackError { name: name(), source })?;
        done.entries += 1;
    }
    // The creation of entries in a folder changed the folder's time.
    for (path, times) in folders.iter().rev() {
        if let Ok(folder) = beneath(root, path, OFlags::RDONLY | OFlags::DIRECTORY) {
            set_times(&folder, *times).map_err(broken)?;
        }
    }
    tar.finish().map_err(broken)?;
    Ok(done)
}

/// Parses a number of only decimal digits; empty text or any other byte gives `None`.
fn number(text: &[u8]) -> Option<u64> {
    let is_number = text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

fn refuse(reason: &str) -> io::Error {
    io::Error::other(reason.to_owned())
}

/// Splits an entry's name into path parts. An absolute name is relative to the destination too.
fn parts(name: &[u8]) -> io::Result<Vec<&OsStr>> {
    let parts = name.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let parts: Vec<_> = parts.map(OsStr::from_bytes).collect();
    if parts.iter().any(|part| *part == "..") {
        return Err(refuse("its name leads out of the destination by .."));
    }
    Ok(parts)
}

fn joined(parts: &[&OsStr]) -> Vec<u8> {
    let mut path = b".".to_vec();
    for part in parts {
        path.push(b'/');
        path.extend(part.as_bytes());
    }
    path
}

fn beneath(root: &Root<'_>, path: &[u8], flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC;
    match openat2::open(root.folder, path, flags, Mode::empty(), root.resolve) {
        Ok(file) => Ok(file),
        Err(Errno::XDEV) => Err(refuse("a link on its way leads out of the destination")),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens the parent folder of an entry. Creates missing folders with [`MISSING_FOLDER`].
fn folder_of(root: &Root<'_>, parts: &[&OsStr]) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    match beneath(root, &joined(parts), flags) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => return result,
    }
    let mut folder = beneath(root, b".", flags)?;
    for (index, part) in parts.iter().enumerate() {
        match rustix::fs::mkdirat(&folder, *part, MISSING_FOLDER) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        folder = beneath(root, &joined(&parts[..=index]), flags)?;
    }
    Ok(folder)
}

/// Creates one entry. Returns the size of a file in bytes, else 0.
fn make(
    entry: &Entry,
    contents: &mut dyn Read,
    root: &Root<'_>,
    folders: &mut Vec<(Vec<u8>, Times)>,
) -> io::Result<u64> {
    let parts = parts(&entry.name)?;
    let Some((last, above)) = parts.split_last() else {
        // The destination itself, whose attributes are not changed.
        return Ok(0);
    };
    let folder = folder_of(root, above)?;
    let owner = Owner::of(entry, root.attributes)?;
    let target = || entry.link.as_deref().ok_or_else(|| refuse("it is a link without a target"));
    match entry.kind {
        EntryType::Directory => {
            if make_folder(root, &folder, &parts, last, &owner)? {
                folders.push((joined(&parts), owner.times));
            }
        }
        EntryType::Symlink => {
            let target = target()?;
            clear(&folder, last)?;
            rustix::fs::symlinkat(OsStr::from_bytes(target), &folder, *last)?;
            owner.own(&folder, last)?;
        }
        EntryType::Link => hard_link(root, target()?, &parts, &folder, last)?,
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            return make_file(entry, contents, &folder, last, &owner);
        }
        EntryType::Char => make_node(entry, &folder, last, FileType::CharacterDevice, &owner)?,
        EntryType::Block => make_node(entry, &folder, last, FileType::BlockDevice, &owner)?,
        EntryType::Fifo => make_node(entry, &folder, last, FileType::Fifo, &owner)?,
        _ => return Err(refuse("its type is unknown")),
    }
    Ok(0)
}

/// Removes the existing entry `name`, if any. Fails for a folder.
fn clear(folder: &File, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Creates a folder, or sets the attributes of an existing folder. Returns false if a symbolic link
/// to a folder exists, which is kept unchanged.
fn make_folder(
    root: &Root<'_>,
    folder: &File,
    parts: &[&OsStr],
    name: &OsStr,
    owner: &Owner,
) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    match rustix::fs::mkdirat(folder, name, MISSING_FOLDER) {
        Ok(()) => {}
        Err(Errno::EXIST) => {
            let there = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(there.st_mode) {
                FileType::Directory => {}
                FileType::Symlink if beneath(root, &joined(parts), flags).is_ok() => {
                    return Ok(false);
                }
                _ => {
                    clear(folder, name)?;
                    rustix::fs::mkdirat(folder, name, MISSING_FOLDER)?;
                }
            }
        }
        Err(errno) => return Err(errno.into()),
    }
    let made = beneath(root, &joined(parts), flags | OFlags::NOFOLLOW)?;
    owner.give(&made)?;
    Ok(true)
}

fn make_file(
    entry: &Entry,
    contents: &mut dyn Read,
    folder: &File,
    name: &OsStr,
    owner: &Owner,
) -> io::Result<u64> {
    clear(folder, name)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    let mut file = File::from(rustix::fs::openat(folder, name, flags, mode)?);
    match &entry.map {
        Some(map) => map.write(contents, &mut file, entry.size)?,
        None if io::copy(contents, &mut file)? == entry.size => {}
        None => return Err(io::ErrorKind::UnexpectedEof.into()),
    }
    owner.give(&file)?;
    set_times(&file, owner.times)?;
    Ok(entry.size)
}

fn hard_link(
    root: &Root<'_>,
    target: &[u8],
    own: &[&OsStr],
    folder: &File,
    name: &OsStr,
) -> io::Result<()> {
    let target = parts(target)?;
    let Some((last, above)) = target.split_last() else {
        return Err(refuse("it is a link to the destination itself"));
    };
    if target == own {
        return Ok(());
    }
    let from = beneath(root, &joined(above), OFlags::PATH | OFlags::DIRECTORY)?;
    clear(folder, name)?;
    Ok(rustix::fs::linkat(from, *last, folder, name, AtFlags::empty())?)
}

fn make_node(
    entry: &Entry,
    folder: &File,
    name: &OsStr,
    kind: FileType,
    owner: &Owner,
) -> io::Result<()> {
    let device = match kind {
        FileType::Fifo => 0,
        _ => entry.device().map(|(major, minor)| rustix::fs::makedev(major, minor))?,
    };
    clear(folder, name)?;
    rustix::fs::mknodat(folder, name, kind, owner.mode, device)?;
    owner.own(folder, name)?;
    // chmod ignores the umask of this process. A link cannot appear in between.
    Ok(rustix::fs::chmodat(folder, name, owner.mode, AtFlags::empty())?)
}

/// Owner, mode, times and extended attributes of an entry.
struct Owner {
    uid: Uid,
    gid: Gid,
    mode: Mode,
    times: Times,
    attributes: Vec<(CString, Vec<u8>)>,
}

impl Owner {
    fn of(entry: &Entry, with_attributes: bool) -> io::Result<Self> {
        let mut attributes = Vec::new();
        for (name, value) in entry.attributes.iter().filter(|_| with_attributes) {
            let name = CString::new(&name[..]);
            let name = name.map_err(|_| refuse("an attribute's name has a NUL"))?;
            attributes.push((name, value.clone()));
        }
        let id =
            |id: u64| u32::try_from(id).map_err(|_| refuse("its user ID or group ID is too large"));
        Ok(Self {
            uid: Uid::from_raw(id(entry.uid)?),
            gid: Gid::from_raw(id(entry.gid)?),
            mode: Mode::from_raw_mode(entry.mode & 0o7777),
            times: entry.times,
            attributes,
        })
    }

    /// Sets owner and times of a link or device, by name and without following links.
    fn own(&self, folder: &File, name: &OsStr) -> io::Result<()> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::chownat(folder, name, Some(self.uid), Some(self.gid), flags)?;
        Ok(rustix::fs::utimensat(folder, name, &timestamps(self.times), flags)?)
    }

    /// Sets owner, mode, then extended attributes: a change of the owner clears the set-user-id bit
    /// and file capabilities.
    fn give(&self, file: &File) -> io::Result<()> {
        let owned = rustix::fs::fchown(file, Some(self.uid), Some(self.gid));
        match owned.and_then(|()| rustix::fs::fchmod(file, self.mode)) {
            // FAT supports neither owner nor mode.
            Err(Errno::PERM) if is_fat(file) => {}
            result => result?,
        }
        for (name, value) in &self.attributes {
            rustix::fs::fsetxattr(file, name.as_c_str(), value, XattrFlags::empty())?;
        }
        Ok(())
    }
}

fn set_times(file: &File, times: Times) -> io::Result<()> {
    Ok(rustix::fs::futimens(file, &timestamps(times))?)
}

fn timestamps(times: Times) -> Timestamps {
    let at = |time: Time| Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() };
    let untouched = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    Timestamps {
        last_access: times.accessed.map_or(untouched, at),
        last_modification: at(times.modified),
    }
}

/// Returns true if the file is on FAT (`MSDOS_SUPER_MAGIC` of `linux/magic.h`).
pub fn is_fat(file: &File) -> bool {
    const MSDOS_SUPER_MAGIC: i64 = 0x4d44;
    rustix::fs::fstatfs(file).is_ok_and(|stat| stat.f_type == MSDOS_SUPER_MAGIC)
}
