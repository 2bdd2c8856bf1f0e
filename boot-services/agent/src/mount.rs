//! A mounted partition that no path can escape from.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::{Error, disk};

/// Where partitions are mounted, one at a time.
const MOUNT_POINT: &str = "/run/tinbox-agent/mnt";

/// A mounted filesystem; unmounted when dropped.
#[derive(Debug)]
pub struct Mounted {
    root: Option<File>,
    device: PathBuf,
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
    pub fn mount(device: &Path, fs_type: &str, read_only: bool) -> Result<Self, Error> {
        disk::wait_for(device)?;
        std::fs::create_dir_all(MOUNT_POINT).map_err(Error::io(format!("create {MOUNT_POINT}")))?;
        let mut flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
        if read_only {
            flags |= MountFlags::RDONLY;
        }
        rustix::mount::mount(device, MOUNT_POINT, fs_type, flags, None).map_err(
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

    /// Create or replace a file with its parent directories.
    pub fn write(&self, path: &str, contents: &[u8], owner: Owner) -> Result<(), Error> {
        let what = |doing: &str| Error::io(format!("{doing} {path} on {}", self.device.display()));
        let (parent, name) = match path.trim_end_matches('/').rsplit_once('/') {
            Some((parent, name)) => (parent, name),
            None => ("", path),
        };
        let mut folder = open_within(self.root()?, "/", OFlags::DIRECTORY, 0)
            .map_err(what("open the root for"))?;
        let mut walked = String::new();
        for part in parent.split('/').filter(|part| !part.is_empty() && *part != ".") {
            walked.push('/');
            walked.push_str(part);
            folder = self.folder(&folder, &walked, part, owner)?;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let full = format!("{walked}/{name}");
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
    let opened = rustix::fs::openat2(root, path, flags, mode, ResolveFlags::IN_ROOT);
    Ok(File::from(opened?))
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
fn is_fat(file: &File) -> bool {
    const MSDOS_SUPER_MAGIC: i64 = 0x4d44;
    rustix::fs::fstatfs(file).is_ok_and(|stat| stat.f_type == MSDOS_SUPER_MAGIC)
}
