//! Mounted partition. Neither `..` nor a symbolic link in a path leads out of the partition.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::Error;
use crate::disks::{disk, preserve, select};
use unpack::{is_fat, openat2};

/// Mount point. Only one partition is mounted at a time.
const MOUNT_POINT: &str = "/run/tinbox-agent/mnt";

/// Maximum wait for the previous mount, which work of a stopped action may still use.
const IN_USE: Duration = Duration::from_secs(60);

/// Mounted filesystem, unmounted on drop.
#[derive(Debug)]
pub struct Mounted {
    root: Option<File>,
    device: PathBuf,
    /// Dropped last, after the unmount.
    _place: Place,
}

/// Lock of the mount point. A thread of a stopped action may still have a mount; without the lock,
/// that thread would later unmount the filesystem of the next action.
#[derive(Debug)]
struct Place;

static TAKEN: Mutex<bool> = Mutex::new(false);
static FREED: Condvar = Condvar::new();

impl Place {
    fn take() -> Option<Self> {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = FREED.wait_timeout_while(taken, IN_USE, |taken| *taken);
        let (mut taken, end) = waited.unwrap_or_else(PoisonError::into_inner);
        if end.timed_out() {
            return None;
        }
        *taken = true;
        Some(Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = false;
        FREED.notify_one();
    }
}

/// Purpose of a mount; determines the mount flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Read files. Also allowed on a preserved disk.
    Read,
    /// Write files. Mounted with nodev, nosuid and noexec.
    Write,
    /// Run programs of the filesystem, without nodev, nosuid and noexec.
    Run,
}

impl Purpose {
    fn flags(self) -> MountFlags {
        let careful = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
        match self {
            Self::Read => careful | MountFlags::RDONLY,
            Self::Write => careful,
            Self::Run => MountFlags::empty(),
        }
    }
}

/// Ownership and permissions of files and directories that [`Mounted::write`] creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id of the owner.
    pub uid: u32,
    /// Group id of the owner.
    pub gid: u32,
    /// Permission bits of the file.
    pub mode: u32,
    /// Permission bits of each directory that is created.
    pub dir_mode: u32,
}

/// File that is replaced temporarily, and the file names for its backup.
#[derive(Debug, Clone, Copy)]
pub struct ReplacedFile<'a> {
    /// Path of the file.
    pub path: &'a str,
    /// Name of the renamed original, in the same folder.
    pub aside: &'a str,
    /// Name of an empty mark file, which exists if there was no original.
    pub absent: &'a str,
}

fn exists(folder: &File, name: &str) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

impl Mounted {
    /// Waits for `device` (a path or selector) and mounts it. Blocks.
    pub fn mount(device: &Path, fs_type: &str, purpose: Purpose) -> Result<Self, Error> {
        let device = &select::resolve(device)?;
        disk::wait_for(device)?;
        if purpose != Purpose::Read {
            preserve::check(device)?;
        }
        let place = Place::take();
        let place = place.ok_or_else(|| Error::Io {
            doing: format!("mount {}: {MOUNT_POINT} is still in use", device.display()),
            source: io::ErrorKind::ResourceBusy.into(),
        })?;
        std::fs::create_dir_all(MOUNT_POINT).map_err(Error::io(format!("create {MOUNT_POINT}")))?;
        rustix::mount::mount(device, MOUNT_POINT, fs_type, purpose.flags(), None).map_err(
            |errno| match errno {
                Errno::NODEV => Error::FileSystem { fs_type: fs_type.to_owned() },
                _ => Error::Io {
                    doing: format!("mount {} as {fs_type}", device.display()),
                    source: errno.into(),
                },
            },
        )?;
        let opened = File::open(MOUNT_POINT).map_err(Error::io(format!("open {MOUNT_POINT}")));
        if opened.is_err() {
            detach();
        }
        Ok(Self { root: Some(opened?), device: device.to_owned(), _place: place })
    }

    fn root(&self) -> Result<&File, Error> {
        self.root.as_ref().ok_or(Error::Stopped)
    }

    /// Opens a file for reading. Symbolic links are resolved within the filesystem.
    pub fn open(&self, path: &str) -> Result<File, Error> {
        open_within(self.root()?, path, OFlags::RDONLY, 0)
            .map_err(Error::io(format!("open {path} on {}", self.device.display())))
    }

    /// Mount point, as the root for a program of the partition.
    pub const PLACE: &CStr = c"/run/tinbox-agent/mnt";

    /// Renames a file to `aside`, or creates the mark file `absent` if there is no file. No effect
    /// if either exists already: then an interrupted run left a replacement in the file's place.
    pub fn set_aside(&self, file: &ReplacedFile) -> Result<(), Error> {
        let what = |doing| self.what(doing, file.path);
        let (folder, name) = self.folder_of(file)?;
        if exists(&folder, file.aside) || exists(&folder, file.absent) {
            return Ok(());
        }
        match rustix::fs::renameat(&folder, name, &folder, file.aside) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
                let mark = rustix::fs::openat(&folder, file.absent, flags, Mode::RUSR);
                mark.map(drop).map_err(|errno| what("mark the absence of")(errno.into()))
            }
            Err(errno) => Err(what("set aside")(errno.into())),
        }
    }

    /// Restores the original file, or its absence, after [`Mounted::set_aside`].
    pub fn put_back(&self, file: &ReplacedFile) -> Result<(), Error> {
        let (folder, name) = self.folder_of(file)?;
        let result = match rustix::fs::renameat(&folder, file.aside, &folder, name) {
            Err(Errno::NOENT) if exists(&folder, file.absent) => {
                let remove = |name| match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
                    Err(Errno::NOENT) => Ok(()),
                    removed => removed,
                };
                remove(name).and_then(|()| remove(file.absent))
            }
            result => result,
        };
        result.map_err(io::Error::from).map_err(self.what("put back", file.path))
    }

    fn folder_of<'a>(&self, file: &ReplacedFile<'a>) -> Result<(File, &'a str), Error> {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", file.path));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let folder = open_within(self.root()?, &format!("/{folder}"), flags, 0)
            .map_err(self.what("open the folder of", file.path))?;
        Ok((folder, name))
    }

    fn what(&self, doing: &str, path: &str) -> impl FnOnce(io::Error) -> Error {
        Error::io(format!("{doing} {path} on {}", self.device.display()))
    }

    /// Opens the folder at `path`. Creates missing folders of the path, with `owner`.
    pub fn folders(&self, path: &str, owner: Owner) -> Result<File, Error> {
        let mut folder = open_within(self.root()?, "/", OFlags::DIRECTORY, 0)
            .map_err(Error::io(format!("open the root of {}", self.device.display())))?;
        let mut walked = String::new();
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            walked.push('/');
            walked.push_str(part);
            folder = self.folder(&folder, &walked, part, owner)?;
        }
        Ok(folder)
    }

    /// Writes a file, and flushes it. Creates missing parent folders.
    pub fn write(&self, path: &str, contents: &[u8], owner: Owner) -> Result<(), Error> {
        let what = |doing: &str| Error::io(format!("{doing} {path} on {}", self.device.display()));
        let (parent, name) = match path.trim_end_matches('/').rsplit_once('/') {
            Some((parent, name)) => (parent, name),
            None => ("", path),
        };
        let folder = self.folders(parent, owner)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let full = format!("{parent}/{name}");
        let file = open_within(self.root()?, &full, flags, owner.mode).map_err(what("create"))?;
        std::io::Write::write_all(&mut &file, contents).map_err(what("write"))?;
        own(&file, owner, owner.mode).map_err(what("set the owner and mode of"))?;
        file.sync_all().map_err(what("flush"))?;
        folder.sync_all().map_err(what("flush the folder of"))
    }

    /// Opens the folder at `walked`. Creates it as `name` in `parent` if missing.
    fn folder(&self, parent: &File, walked: &str, name: &str, owner: Owner) -> Result<File, Error> {
        let what =
            |doing: &str| Error::io(format!("{doing} {walked} on {}", self.device.display()));
        let flags = OFlags::DIRECTORY | OFlags::RDONLY;
        match open_within(self.root()?, walked, flags, 0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result.map_err(what("open")),
        }
        let mode = Mode::from_raw_mode(owner.dir_mode);
        rustix::fs::mkdirat(parent, name, mode).map_err(io::Error::from).map_err(what("create"))?;
        let made = open_within(self.root()?, walked, flags, 0).map_err(what("open"))?;
        own(&made, owner, owner.dir_mode).map_err(what("set the owner and mode of"))?;
        Ok(made)
    }

    /// Flushes all data and unmounts.
    pub fn unmount(mut self) -> Result<(), Error> {
        let what = |doing: &str| Error::io(format!("{doing} {}", self.device.display()));
        rustix::fs::syncfs(self.root()?).map_err(what("flush"))?;
        self.root = None;
        rustix::mount::unmount(MOUNT_POINT, UnmountFlags::empty()).map_err(what("unmount"))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.root.take().is_some() {
            detach();
        }
    }
}

/// Unmounts lazily (MNT_DETACH), after a failed action.
fn detach() {
    let _ = rustix::mount::unmount(MOUNT_POINT, UnmountFlags::DETACH);
}

/// Opens a path with `root` as root folder (RESOLVE_IN_ROOT): neither `..` nor a link leads out.
fn open_within(root: &File, path: &str, flags: OFlags, mode: u32) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode);
    Ok(openat2::open(root, path, flags, mode, ResolveFlags::IN_ROOT)?)
}

/// Sets owner and mode. Ignores EPERM on FAT, which supports neither.
fn own(file: &File, owner: Owner, mode: u32) -> io::Result<()> {
    let uid = rustix::fs::Uid::from_raw(owner.uid);
    let gid = rustix::fs::Gid::from_raw(owner.gid);
    let chown = rustix::fs::chownat(file, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH);
    let chmod = rustix::fs::fchmod(file, Mode::from_raw_mode(mode));
    match chown.and(chmod) {
        Err(Errno::PERM) if is_fat(file) => Ok(()),
        result => Ok(result?),
    }
}
