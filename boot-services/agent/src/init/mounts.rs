//! The kernel's filesystems, the console, and modules when the kernel is a stock one.

use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::MountFlags;

use crate::Error;

/// What process 1 mounts: type and place.
const MOUNTS: [(&str, &str); 5] = [
    ("devtmpfs", "/dev"),
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("tmpfs", "/run"),
    ("tmpfs", "/tmp"),
];

/// Modules of a stock kernel, named so that their order is the order to load them in. Our own
/// kernel has everything built in and the folder does not exist.
const MODULES: &str = "/lib/modules-boot";

/// Mount, then take the console for the standard streams.
pub(super) fn prepare() -> Result<(), Error> {
    for (fs_type, place) in MOUNTS {
        std::fs::create_dir_all(place).map_err(Error::io(format!("create {place}")))?;
        match rustix::mount::mount(fs_type, place, fs_type, MountFlags::empty(), None) {
            // Mounted already, by the kernel or by whoever started us.
            Ok(()) | Err(Errno::BUSY) => {}
            Err(errno) => return Err(Error::io(format!("mount {place}"))(errno)),
        }
    }
    firmware_variables();
    std::fs::create_dir_all("/etc").map_err(Error::io("create /etc"))?;
    console()
}

/// What the firmware boots is told, never changed; a machine without UEFI has no such folder.
fn firmware_variables() {
    const PLACE: &str = "/sys/firmware/efi/efivars";
    if Path::new(PLACE).is_dir() {
        // Without it the inventory lacks a list, and nothing else.
        let _ = rustix::mount::mount("efivarfs", PLACE, "efivarfs", MountFlags::RDONLY, None);
    }
}

/// An initramfs without a console node starts us with no standard streams at all.
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

/// Load what there is; a module that this machine has no use for fails, and that is no failure.
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
