//! Mount points of the box's volumes, and mount flags.

use rustix::mount::MountFlags;

use crate::Error;

/// Mount point of the boot volume: kernels, boot loader, `box.toml`.
pub const BOOT: &str = "/boot";
/// Mount point of data that must survive an update: the store, keys, identity.
pub const STATE: &str = "/state";
/// Mount point of data that can be downloaded again.
pub const CACHE: &str = "/cache";
/// Folder of files that the box serves to machines: files of the system, and boot media made from
/// them.
pub const ARTIFACTS: &str = "/run/tinbox/artifacts";

/// Mount flags of volumes that contain no programs and no devices.
pub(crate) const DATA: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC)
    .union(MountFlags::NOATIME);
/// Mount flags of the boot volume, which is writable only during a change (`slots`).
pub(crate) const BOOT_FLAGS: MountFlags = DATA.union(MountFlags::RDONLY);

/// Makes the boot volume writable, or read-only again.
///
/// # Errors
/// The kernel refuses the remount, as for every process except process 1.
pub(crate) fn set_boot_writable(writable: bool) -> Result<(), Error> {
    let flags = if writable { BOOT_FLAGS.difference(MountFlags::RDONLY) } else { BOOT_FLAGS };
    rustix::mount::mount_remount(BOOT, flags, "").map_err(Error::io(format!("remount {BOOT}")))
}
