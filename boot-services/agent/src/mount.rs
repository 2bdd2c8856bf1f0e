//! A mounted partition that no path can escape from.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::{Error, disk, preserve, select};

/// Where partitions are mounted, one at a time.
const MOUNT_POINT: &str = "/run/tinbox-agent/mnt";

/// A mounted filesystem; unmounted when dropped.
#[derive(Debug)]
pub struct Mounted {
    root: Option<File>,
    device: PathBuf,
}

/// What a filesystem is mounted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read files.
    Read,
    /// To write files, none of which is a program or device to us.
    Write,
    /// To run its programs, as the machine itself would.
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

/// Ownership and permissions of what [`Mounted::write`] creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Permission bits of the file.
    pub mode: u32,
    /// Permission bits of each directory created on the way.
    pub dir_mode: u32,
}

impl Mounted {
    /// Mount `device`, waiting for it to appear. Blocks.
    pub fn mount(device: &Path, fs_type: &str, purpose: Purpose) -> Result<Self, Error> {
        let device = &select::resolve(device)?;
        disk::wait_for(device)?;
        if purpose != Purpose::Read {
            preserve::check(device)?;
        }
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
        Ok(Self { root: Some(opened?), device: device.to_owned() })
    }

    fn root(&self) -> Result<&File, Error> {
        self.root.as_ref().ok_or(Error::Stopped)
    }

    /// Open a file for reading; symbolic links stay within the filesystem.
    pub fn open(&self, path: &str) -> Result<File, Error> {
        open_within(self.root()?, path, OFlags::RDONLY, 0)
            .map_err(Error::io(format!("open {path} on {}", self.device.display())))
    }

    /// Where its root is, for a program's.
    pub const PLACE: &CStr = c"/run/tinbox-agent/mnt";

    /// Take a file out of the way; whether there was one.
    pub fn set_aside(&self, path: &str, aside: &str) -> Result<bool, Error> {
        let what = |doing: &str| Error::io(format!("{doing} {path} on {}", self.device.display()));
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let folder = open_within(self.root()?, &format!("/{folder}"), flags, 0)
            .map_err(what("open the folder of"))?;
        match rustix::fs::renameat(&folder, name, &folder, aside) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(what("set aside")(errno.into())),
        }
    }

    /// Undo [`Mounted::set_aside`]; with nothing set aside the file is removed.
    pub fn put_back(&self, path: &str, aside: &str, was_there: bool) -> Result<(), Error> {
        let what = |doing: &str| Error::io(format!("{doing} {path} on {}", self.device.display()));
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let folder = open_within(self.root()?, &format!("/{folder}"), flags, 0)
            .map_err(what("open the folder of"))?;
        let result = if was_there {
            rustix::fs::renameat(&folder, aside, &folder, name)
        } else {
            rustix::fs::unlinkat(&folder, name, AtFlags::empty())
        };
        result.map_err(io::Error::from).map_err(what("put back"))
    }

    /// The folder at `path` with the folders above it, made where they are missing.
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

    /// Create or replace a file with its parent directories.
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

    /// The directory at `walked`, made in `parent` when it is missing.
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

    /// Flush and unmount.
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

/// The way out of a failed action: nothing is lost that the failure did not lose already.
fn detach() {
    let _ = rustix::mount::unmount(MOUNT_POINT, UnmountFlags::DETACH);
}

/// `openat2` with the filesystem as its own root: neither `..` nor a link leads out.
fn open_within(root: &File, path: &str, flags: OFlags, mode: u32) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode);
    Ok(crate::beneath::open(root, path, flags, mode, ResolveFlags::IN_ROOT)?)
}

/// FAT has neither owners nor modes and says EPERM; that is what was asked of it.
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

/// `MSDOS_SUPER_MAGIC` of `linux/magic.h`.
pub fn is_fat(file: &File) -> bool {
    const MSDOS_SUPER_MAGIC: i64 = 0x4d44;
    rustix::fs::fstatfs(file).is_ok_and(|stat| stat.f_type == MSDOS_SUPER_MAGIC)
}
