//! Mounts kernel file systems, opens the console, and loads kernel modules.

use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::MountFlags;

use crate::Error;

/// File systems that process 1 mounts: type and mount point.
const MOUNTS: [(&str, &str); 5] = [
    ("devtmpfs", "/dev"),
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("tmpfs", "/run"),
    ("tmpfs", "/tmp"),
];

/// Folder with the modules of a stock kernel; the file names give the load order. Missing with
/// Tinbox's own kernel, which has no modules.
const MODULES: &str = "/lib/modules-boot";

/// Mounts the file systems, and opens `/dev/console` as standard input, output and error.
pub(super) fn prepare() -> Result<(), Error> {
    for (fs_type, place) in MOUNTS {
        std::fs::create_dir_all(place).map_err(Error::io(format!("create {place}")))?;
        match rustix::mount::mount(fs_type, place, fs_type, MountFlags::empty(), None) {
            // Mounted already, by the kernel or by the process that started the agent.
            Ok(()) | Err(Errno::BUSY) => {}
            Err(errno) => return Err(Error::io(format!("mount {place}"))(errno)),
        }
    }
    firmware_variables();
    std::fs::create_dir_all("/etc").map_err(Error::io("create /etc"))?;
    console()
}

/// Mounts efivarfs read-only, for the boot entries in the inventory. No effect without UEFI.
fn firmware_variables() {
    const PLACE: &str = "/sys/firmware/efi/efivars";
    if Path::new(PLACE).is_dir() {
        // Without the mount, the inventory only lacks the boot list.
        let _ = rustix::mount::mount("efivarfs", PLACE, "efivarfs", MountFlags::RDONLY, None);
    }
}

/// Opens the console as standard streams, which process 1 lacks on an initramfs without a console
/// node.
fn console() -> Result<(), Error> {
    let attempt = || -> std::io::Result<()> {
        let console = OpenOptions::new().read(true).write(true).open("/dev/console")?;
        rustix::stdio::dup2_stdin(&console)?;
        rustix::stdio::dup2_stdout(&console)?;
        rustix::stdio::dup2_stderr(&console)?;
        Ok(())
    };
    attempt().map_err(Error::io("open /dev/console"))
}

/// Loads all modules. Failures are only logged, as for a module without matching hardware.
pub(super) fn load_modules() {
    let Ok(folder) = std::fs::read_dir(MODULES) else { return };
    let mut paths: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let (mut loaded, all) = (0, paths.len());
    for path in paths {
        match load(&path) {
            Ok(()) => loaded += 1,
            Err(error) => {
                let (module, reason) = (path.display(), error.to_string());
                tracing::warn!(%module, reason, "module not loaded");
            }
        }
    }
    tracing::info!(loaded, all, "modules loaded");
}

fn load(path: &Path) -> std::io::Result<()> {
    let file = File::open(path)?;
    match rustix::system::finit_module(&file, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
