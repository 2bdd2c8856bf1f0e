//! Mounts in a container's root, in addition to its image: kernel file systems, resolv.conf and
//! hosts, and the action's volumes. No mount gives access to a preserved disk.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use imaging::preserve;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::MountFlags;

use super::sandbox::path_of;
use super::volume::Volume;
use crate::{Error, sys};

/// Folders of this OS that are mounted into every container.
const BINDS: [&str; 2] = ["/dev", "/sys"];
const SHM: &str = "/dev/shm";
/// Mount options of `/dev/shm`; 64 MiB as in Docker.
const SHM_OPTIONS: &std::ffi::CStr = c"size=64m,mode=1777";
/// Empty, read-only file that replaces the device nodes of preserved disks.
const NOTHING: &str = "/run/tinbox-agent/nothing";
/// Files that are copied from this OS, each with the content if this OS lacks the file.
const COPIES: [(&str, &str); 2] =
    [("/etc/resolv.conf", ""), ("/etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost\n")];
const COPY_BYTES: u64 = 64 << 10;
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o755);
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);

/// Mounts everything below the container's root `root`; must run on the container's thread. Returns
/// true if the container's first process must still mount `/proc`.
pub(super) fn mount_all(
    root: &File,
    volumes: &[Volume],
    own_processes: bool,
) -> Result<bool, Error> {
    let doing = |what: String| Error::io(format!("give the container {what}"));
    // First, so that all folders are bound without these devices.
    leave_out(&preserve::guard()?).map_err(Error::io("hide preserved disks from the container"))?;
    for (path, otherwise) in COPIES {
        copy(root, path, otherwise).map_err(doing(format!("its {path}")))?;
    }
    let is_taken =
        |target: &str| volumes.iter().any(|volume| parts(&volume.target).eq(parts(target)));
    let proc = (!is_taken("/proc")).then_some("/proc");
    if proc.is_some() {
        place(root, "/proc", true).map_err(doing("/proc".to_owned()))?;
    }
    let binds = BINDS.into_iter().chain(proc.filter(|_| !own_processes));
    for path in binds.filter(|path| !is_taken(path)) {
        bind(root, path, path, false).map_err(doing(path.to_owned()))?;
    }
    if !is_taken(SHM) && !is_taken("/dev") {
        let mounted = place(root, SHM, true).and_then(|folder| {
            let (kind, flags) = ("tmpfs", MountFlags::NOSUID | MountFlags::NODEV);
            Ok(rustix::mount::mount(kind, path_of(&folder), kind, flags, SHM_OPTIONS)?)
        });
        mounted.map_err(doing(SHM.to_owned()))?;
    }
    let mut volumes: Vec<&Volume> = volumes.iter().collect();
    // A mount within another one must come after it.
    volumes.sort_by_key(|volume| parts(&volume.target).count());
    for Volume { source, target, read_only } in volumes {
        let mounted = match source {
            Some(source) => bind(root, source, target, *read_only),
            None => place(root, target, true).map(|_| ()),
        };
        mounted.map_err(doing(format!("its volume {target}")))?;
    }
    Ok(proc.is_some() && own_processes)
}

/// Hides device nodes by a read-only bind mount of [`NOTHING`], in this thread's mount namespace.
fn leave_out(nodes: &[PathBuf]) -> io::Result<()> {
    if nodes.is_empty() {
        return Ok(());
    }
    File::create(NOTHING)?;
    for node in nodes {
        rustix::mount::mount_bind(NOTHING, node)?;
        let flags = MountFlags::BIND | MountFlags::RDONLY;
        rustix::mount::mount_remount(node, flags, c"")?;
    }
    Ok(())
}

/// Bind-mounts `source` of this OS at `target`, with all mounts below. Creates a missing source as
/// a folder, as Docker does.
fn bind(root: &File, source: &str, target: &str, read_only: bool) -> io::Result<()> {
    if !Path::new(source).exists() {
        std::fs::create_dir_all(source)?;
    }
    let folder = place(root, target, Path::new(source).is_dir())?;
    rustix::mount::mount_bind_recursive(source, path_of(&folder))?;
    if read_only {
        // Opened again: the open descriptor is the folder below the mount.
        let mounted = within(root, Path::new(target), OFlags::PATH)?;
        // A volume such as `/:/host:ro` includes all mounts below it.
        sys::make_read_only(&mounted)?;
    }
    Ok(())
}

/// Replaces a file of the image by the file of this OS, or by the text `otherwise` if missing.
fn copy(root: &File, path: &str, otherwise: &str) -> io::Result<()> {
    let mut contents = Vec::new();
    if let Ok(file) = File::open(path) {
        file.take(COPY_BYTES).read_to_end(&mut contents)?;
    } else {
        contents.extend_from_slice(otherwise.as_bytes());
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = place(root, folder, true)?;
    match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, name, flags, FILE_MODE)?;
    File::from(file).write_all(&contents)
}

/// Opens the file or folder at `path` in the container. Creates it with its parent folders if
/// missing. Links are resolved as in the container.
pub(super) fn place(root: &File, path: &str, is_folder: bool) -> io::Result<File> {
    match within(root, Path::new(path), OFlags::PATH) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    let mut folder = within(root, Path::new("."), OFlags::PATH | OFlags::DIRECTORY)?;
    let (mut walked, count) = (std::path::PathBuf::from("."), parts(path).count());
    for (index, part) in parts(path).enumerate() {
        walked.push(part);
        let is_last = index + 1 == count;
        let made = if is_last && !is_folder {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
            rustix::fs::openat(&folder, part, flags | OFlags::NOFOLLOW, FILE_MODE).map(|_| ())
        } else {
            rustix::fs::mkdirat(&folder, part, FOLDER_MODE)
        };
        match made {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        folder = within(root, &walked, OFlags::PATH)?;
    }
    Ok(folder)
}

/// Opens a path with `root` as root folder (RESOLVE_IN_ROOT); links cannot leave the container.
pub(super) fn within(root: &File, path: &Path, flags: OFlags) -> io::Result<File> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC;
    Ok(unpack::openat2::open(root, path, flags, Mode::empty(), resolve)?)
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}
