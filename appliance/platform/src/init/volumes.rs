//! File systems that process 1 mounts and unmounts, in order.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use super::state::State;
use super::{requested_reset, zram};
use crate::Error;
use crate::disk::mount_points::{ARTIFACTS, BOOT, BOOT_FLAGS, CACHE, DATA, STATE};
use crate::disk::{self, growth};
use crate::hardware::clock;

/// Folder in the read-only root with the files that the box serves to machines.
const SHIPPED: &str = "/usr/share/tinbox/artifacts";
/// Mount point for the running slot's folder of the boot volume.
const SLOT: &str = "/run/tinbox/slot";
/// Mount options: data is on the disk after 5 s, and a file system with an error becomes read-only.
pub(super) const EXT4: &str = "commit=5,errors=remount-ro";
/// Kernel file systems to mount: type, mount point, options.
const KERNEL: [(&str, &str, &str); 5] = [
    ("devtmpfs", "/dev", ""),
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("tmpfs", "/run", "mode=755,size=10%"),
    ("tmpfs", "/tmp", "mode=1777,size=20%"),
];
/// Kernel file systems that some machines do not have: type, mount point.
const OPTIONAL: [(&str, &str); 2] =
    [("pstore", "/sys/fs/pstore"), ("efivarfs", "/sys/firmware/efi/efivars")];
/// Kernel settings: only important messages reach the console, and a kernel that hangs restarts.
const SETTINGS: [(&str, &str); 4] = [
    ("kernel/printk", "3"),
    ("kernel/panic", "10"),
    ("kernel/hung_task_panic", "1"),
    ("vm/swappiness", "100"),
];

/// Kernel settings for hardening. A setting that the kernel does not have is skipped.
const HARDENING: [(&str, &str); 4] = [
    ("kernel/kptr_restrict", "2"),
    ("kernel/dmesg_restrict", "1"),
    ("kernel/kexec_load_disabled", "1"),
    ("kernel/yama/ptrace_scope", "2"),
];

/// Opens the console as standard input, output and error. The kernel may start process 1 without
/// these streams.
pub(super) fn console() {
    let Ok(console) = OpenOptions::new().read(true).write(true).open("/dev/console") else {
        return;
    };
    // Errors are ignored, because no stream exists to report them.
    let _ = rustix::stdio::dup2_stdin(&console);
    let _ = rustix::stdio::dup2_stdout(&console);
    let _ = rustix::stdio::dup2_stderr(&console);
}

/// Result of mounting at the start.
#[derive(Debug, Default)]
pub(super) struct MountResult {
    /// Sentences for the owner about operations that failed.
    pub(super) trouble: Vec<String>,
    /// True if no battery kept the time while the box was off.
    pub(super) time_is_a_guess: bool,
    /// Reason for safe mode, if a safe start was requested.
    pub(super) safe: Option<String>,
    /// Reason why the state volume cannot be used, or `None` if it is mounted.
    pub(super) lost: Option<String>,
}

/// Mounts all volumes. A requested reset is carried out before any other use of the volumes. `keys`
/// are the names of the box's keys.
pub(super) fn mount(keys: &[&str]) -> MountResult {
    let mut trouble = Vec::new();
    let mut disks = mount_disks(&mut trouble);
    let safe = requested_reset::go(keys, &mut disks, &mut trouble);
    disks.state.reserve();
    if let Err(error) = offer() {
        trouble.push(stdx::chain(&error));
    }
    let time_is_a_guess = clock::begin(Path::new(STATE));
    let lost = disks.state.lost().map(str::to_owned);
    MountResult { trouble, time_is_a_guess, safe, lost }
}

/// State and cache volume after mounting.
#[derive(Debug)]
pub(super) struct Disks {
    pub(super) state: State,
    /// True if the cache volume does not mount and a tmpfs replaces it.
    pub(super) cache_is_lost: bool,
}

/// Mounts the file systems of the kernel and of the disk.
fn mount_disks(trouble: &mut Vec<String>) -> Disks {
    let mut attempt = |result: Result<(), Error>| {
        if let Err(error) = result {
            trouble.push(stdx::chain(&error));
        }
    };
    for (kind, place, options) in KERNEL {
        attempt(mount_at(Path::new(kind), place, kind, MountFlags::empty(), options));
    }
    for (kind, place) in OPTIONAL {
        if Path::new(place).is_dir() {
            attempt(mount_at(Path::new(kind), place, kind, MountFlags::empty(), ""));
        }
    }
    let known = |(name, _): &(&str, &str)| Path::new("/proc/sys").join(name).exists();
    for (name, value) in SETTINGS.into_iter().chain(HARDENING.into_iter().filter(known)) {
        let file = Path::new("/proc/sys").join(name);
        attempt(fs::write(&file, value).map_err(Error::io(format!("set {}", file.display()))));
    }
    attempt(zram::swap());
    let partitions = disk::partitions().unwrap_or_else(|error| {
        attempt(Err(error));
        std::collections::BTreeMap::new()
    });
    let of = |name: &str| partitions.get(name).cloned();
    attempt(mount_part("TINBOX", of("TINBOX"), BOOT, "vfat", BOOT_FLAGS, "utf8"));
    let cache = of("cache");
    attempt(cache.as_deref().map_or(Ok(()), grow));
    let mounted = mount_part("cache", cache.clone(), CACHE, "ext4", DATA, EXT4);
    let cache_is_lost = mounted.is_err();
    if let Err(error) = mounted {
        attempt(Err(error));
        // The box works without the cache volume, and loses cached files at shutdown.
        attempt(mount_at(Path::new("tmpfs"), CACHE, "tmpfs", DATA, "mode=700,size=25%"));
    } else {
        attempt(cache.as_deref().map_or(Ok(()), |part| growth::file_system(CACHE, part)));
    }
    let device = of("state");
    Disks { state: State::mount(device, trouble), cache_is_lost }
}

/// Returns the running slot, `a` or `b`, from the kernel's command line, or `None` if the line
/// names no slot.
///
/// # Errors
/// The command line cannot be read.
pub fn slot() -> Result<Option<String>, Error> {
    let line = fs::read_to_string("/proc/cmdline").map_err(Error::io("read the command line"))?;
    let slot = line.split_whitespace().find_map(|word| word.strip_prefix("tinbox.slot="));
    Ok(slot.map(str::to_owned))
}

/// Grows the partition of the cache to the end of the disk.
fn grow(cache: &Path) -> Result<(), Error> {
    if let Some((from, to)) = growth::partition(cache)? {
        println!("tinbox: the cache grows from {} to {}", stdx::bytes(from), stdx::bytes(to));
    }
    Ok(())
}

/// Mounts the served files as a writable overlay, because the agent's boot media are made in it.
fn offer() -> Result<(), Error> {
    let slot = slot()?;
    let folder = Path::new(BOOT).join("tinbox").join(slot.as_deref().unwrap_or("a"));
    make(SLOT)?;
    rustix::mount::mount_bind(&folder, SLOT)
        .map_err(Error::io(format!("bind-mount {} at {SLOT}", folder.display())))?;
    let (upper, work) = (format!("{CACHE}/media"), format!("{CACHE}/.media"));
    for place in [&upper, &work] {
        make(place)?;
    }
    let options = format!("lowerdir={SHIPPED},upperdir={upper},workdir={work}");
    mount_at(Path::new("overlay"), ARTIFACTS, "overlay", DATA, &options)
}

pub(super) fn mount_part(
    name: &str,
    device: Option<PathBuf>,
    place: &str,
    kind: &str,
    flags: MountFlags,
    options: &str,
) -> Result<(), Error> {
    let device = device.ok_or_else(|| Error::NoPartition { name: name.to_owned() })?;
    mount_at(&device, place, kind, flags, options)
}

pub(super) fn mount_at(
    device: &Path,
    place: &str,
    kind: &str,
    flags: MountFlags,
    options: &str,
) -> Result<(), Error> {
    if is_mounted(Path::new(place)) {
        return Ok(());
    }
    // The folders already exist in the read-only root.
    let _ = fs::create_dir_all(place);
    let options = std::ffi::CString::new(options).unwrap_or_default();
    let options = (!options.is_empty()).then_some(options.as_c_str());
    let what = format!("mount {} at {place}", device.display());
    rustix::mount::mount(device, place, kind, flags, options).map_err(Error::io(what))
}

/// True if a file system is mounted at `place`, such as `/dev` by the kernel, or a volume by a
/// container runtime.
fn is_mounted(place: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|data| data.dev()).ok();
    let own = device(place);
    own.is_some() && own != place.parent().and_then(device)
}

fn make(place: &str) -> Result<(), Error> {
    fs::create_dir_all(place).map_err(Error::io(format!("create the folder {place}")))
}

/// Unmounts the volumes, which writes their data. A volume that is still in use becomes read-only.
pub(super) fn unmount() {
    clock::keep(Path::new(STATE));
    for place in [ARTIFACTS, SLOT, CACHE, STATE, BOOT] {
        match rustix::mount::unmount(place, UnmountFlags::empty()) {
            // The volume was not mounted.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => continue,
            Err(errno) => eprintln!("tinbox: cannot unmount {place}: {errno}"),
        }
        // A volume that is still in use must not be written any more.
        if let Err(errno) = rustix::mount::mount_remount(place, MountFlags::RDONLY, "") {
            eprintln!("tinbox: cannot make {place} read-only: {errno}");
        }
    }
    rustix::fs::sync();
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_mounted;

    #[test]
    fn a_file_system_of_its_own_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("place");
        assert!(!is_mounted(&place), "there is no such folder");
        std::fs::create_dir(&place).unwrap();
        assert!(!is_mounted(&place));
        assert!(is_mounted(Path::new("/proc")));
    }
}
