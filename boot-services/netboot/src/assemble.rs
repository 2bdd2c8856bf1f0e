//! Media of the agent OS, made of what the artifact directory already holds: a unified kernel image
//! (UKI) for firmware that loads it by HTTP or TFTP, and a CD image around it for BMCs to mount.
//!
//! Both are the same for every machine: their kernel command line is [`MAGIC`](crate::iso::MAGIC),
//! and [`crate::iso`] puts one machine's arguments in its place as it serves them. The same input
//! gives the same bytes; [`refresh`] alone touches files.
//!
//! The CD boots machines with UEFI firmware only. A BIOS would need a boot loader of its own that
//! reads the CD; for such machines there is the network.

mod fat;
mod iso9660;
mod media;
mod pe;
mod pieces;

pub use media::{CD, STUB, UNIFIED, refresh};
pub use pieces::Pieces;

use crate::Error;
use crate::iso::MAGIC;

/// What the stub shows of the system it starts (`os-release(5)`).
const OS_RELEASE: &str = "ID=tinbox-agent\nNAME=\"Tinbox agent\"\nPRETTY_NAME=\"Tinbox agent\"\n";

/// The parts of the agent OS.
#[derive(Debug, Clone, Copy)]
pub struct AgentOs<'a> {
    /// systemd's EFI stub, `linuxx64.efi.stub`.
    pub stub: &'a [u8],
    /// A kernel with an EFI entry, `vmlinuz-x86_64`.
    pub kernel: &'a [u8],
    /// `initramfs-x86_64`.
    pub initramfs: &'a [u8],
}

/// The unified kernel image: `agent-x86_64.efi`.
///
/// # Errors
/// [`Error::Stub`] when the stub is no PE image that takes further sections,
/// [`Error::MediumTooLarge`].
pub fn unified<'a>(os: &AgentOs<'a>) -> Result<Pieces<'a>, Error> {
    // The kernel comes last, as the UKI specification wants it: some stubs unpack it in place.
    let sections = [
        (".osrel", OS_RELEASE.as_bytes()),
        (".cmdline", MAGIC.as_bytes()),
        (".initrd", os.initramfs),
        (".linux", os.kernel),
    ];
    pe::with_sections(os.stub, &sections)
}

/// The CD image: `agent-x86_64.iso`, about 0.4 MiB larger than kernel and initramfs together.
/// Written to a USB stick as it is, it boots from there as well.
///
/// # Errors
/// As [`unified`].
pub fn cd<'a>(os: &AgentOs<'a>) -> Result<Pieces<'a>, Error> {
    let partition = fat::system_partition(unified(os)?)?;
    iso9660::bootable(partition)
}

#[cfg(test)]
mod tests;
