//! Builds media of the agent OS from the files in the artifact directory: a unified kernel image
//! (UKI) that firmware loads by HTTP or TFTP, and a CD image with the UKI for BMCs to mount.
//!
//! Both media are common to all machines. Their kernel command line is
//! [`MAGIC`](crate::iso::MAGIC), which [`crate::iso`] replaces with one machine's arguments while
//! serving. The same input gives the same bytes. Only [`refresh`] accesses files.
//!
//! The CD boots only machines with UEFI firmware. A BIOS would need its own boot loader that reads
//! the CD; such machines boot from the network.

mod fat;
mod iso9660;
mod media;
mod pe;
mod pieces;

pub use media::{CD, STUB, UNIFIED, refresh};
pub use pieces::Pieces;

use crate::Error;
use crate::iso::MAGIC;

/// Content of `os-release(5)`, which the stub displays.
const OS_RELEASE: &str = "ID=tinbox-agent\nNAME=\"Tinbox agent\"\nPRETTY_NAME=\"Tinbox agent\"\n";

/// Parts of the agent OS.
#[derive(Debug, Clone, Copy)]
pub struct AgentOs<'a> {
    /// EFI stub of systemd, `linuxx64.efi.stub`.
    pub stub: &'a [u8],
    /// Kernel with an EFI entry point, `vmlinuz-x86_64`.
    pub kernel: &'a [u8],
    /// Initramfs of the agent, `initramfs-x86_64`.
    pub initramfs: &'a [u8],
}

/// Builds the unified kernel image, `agent-x86_64.efi`.
///
/// # Errors
/// The stub is not a PE image that takes further sections ([`Error::Stub`]), or a part is too large
/// ([`Error::MediumTooLarge`]).
pub fn unified<'a>(os: &AgentOs<'a>) -> Result<Pieces<'a>, Error> {
    // The kernel is last, as the UKI specification requires: some stubs decompress it in place.
    let sections = [
        (".osrel", OS_RELEASE.as_bytes()),
        (".cmdline", MAGIC.as_bytes()),
        (".initrd", os.initramfs),
        (".linux", os.kernel),
    ];
    pe::with_sections(os.stub, &sections)
}

/// Builds the CD image `agent-x86_64.iso`, about 0.4 MiB larger than kernel and initramfs together.
/// The image also boots from a USB stick.
///
/// # Errors
/// The unified kernel image cannot be built ([`unified`]), or is too large for the image.
pub fn cd<'a>(os: &AgentOs<'a>) -> Result<Pieces<'a>, Error> {
    let partition = fat::system_partition(unified(os)?)?;
    iso9660::bootable(partition)
}

#[cfg(test)]
mod tests;
