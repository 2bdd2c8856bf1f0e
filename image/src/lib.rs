//! Builds the files that the box serves (the agent's initramfs) and the box itself: its disk image,
//! update bundles, and the files published with them.
//!
//! The crate must never: use the network, or write anything that differs between two builds of the
//! same inputs (times, owners, order). Disk images of operating systems are built by the scripts in
//! `os/`, kernels by those in `kernel/`, programs by cargo or by Buildroot. Enter at
//! [`agent_initramfs`] and [`Cpio`] for the agent OS, [`disk::assemble`], [`bundle::write`] and
//! [`release::Release`] for the box, [`Budget`] for the sizes of both.

mod budget;
pub mod bundle;
mod cpio;
pub mod disk;
mod elf;
mod initramfs;
mod program;
pub mod release;
pub mod sbom;

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

pub use budget::{AGENT_OS_BUDGET, Budget, box_image_budget};
pub use cpio::Cpio;
pub use initramfs::{MODULES_FOLDER, TOOLS_SUM, agent_initramfs, compress};
pub use platform::bundle::Arch;

/// Failure to build an image or a bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input file or folder of the image cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// An output file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// An external program of the build could not be started.
    #[error("cannot run {program} (package {package})")]
    Program {
        /// Name of the program.
        program: &'static str,
        /// Debian package that contains the program.
        package: &'static str,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// An external program of the build failed without a message.
    #[error("{program} ended with {status} on {}", path.display())]
    Ended {
        /// Name of the program.
        program: &'static str,
        /// Exit status of the program.
        status: ExitStatus,
        /// File or folder that the program worked on.
        path: PathBuf,
    },
    /// An external program of the build failed with a message.
    #[error("{program} ended with {status} on {}: {said}", path.display())]
    Refused {
        /// Name of the program.
        program: &'static str,
        /// Exit status of the program.
        status: ExitStatus,
        /// File or folder that the program worked on.
        path: PathBuf,
        /// Last lines of the program's output.
        said: String,
    },
    /// A file is larger than its place on the box's disk.
    #[error(
        "{what} has {size}, and the box's disk has room for {limit} (image/src/disk/layout.rs)"
    )]
    NoRoom {
        /// Description of the file.
        what: &'static str,
        /// Size of the file, as text.
        size: String,
        /// Size of its place, as text.
        limit: String,
    },
    /// The partition table cannot be written; the text is the reason.
    #[error("cannot write the partition table: {0}")]
    Table(String),
    /// The secret key for signing cannot be read.
    #[error(transparent)]
    Key(#[from] ::release::Error),
    /// The list of components has an invalid line.
    #[error("{} is not a valid list of the image's components: {why}", path.display())]
    Components {
        /// Path of the list.
        path: PathBuf,
        /// Reason why the line is invalid.
        why: String,
    },
    /// The program would not start as process 1: it is built for another processor, or needs a C
    /// library.
    #[error("{} is not a static ELF program for {arch}: {reason}", path.display())]
    NotStatic {
        /// Path of the program.
        path: PathBuf,
        /// Processor of the image.
        arch: Arch,
        /// Reason, from the checks of the ELF header.
        reason: &'static str,
    },
    /// The file is not a kernel for the processor, so the loader could not start it.
    #[error("{} is not a Linux kernel for {arch}", path.display())]
    NotAKernel {
        /// Path of the file.
        path: PathBuf,
        /// Processor of the image.
        arch: Arch,
    },
    /// A file is too large for a cpio archive, whose size fields have 32 bits.
    #[error("{name} has {size} bytes, more than a cpio archive can hold")]
    TooLarge {
        /// Name of the file inside the archive.
        name: String,
        /// Size of the file in bytes.
        size: usize,
    },
    /// The zstd library failed to compress.
    #[error("cannot compress with zstd")]
    Compress {
        /// Error of the zstd library.
        #[source]
        source: io::Error,
    },
    /// Files are larger than the design allows.
    #[error("{what} has {total}, over its budget of {limit}")]
    OverBudget {
        /// Name of the group of files.
        what: &'static str,
        /// Total size of the files, as text.
        total: String,
        /// Maximum size, as text.
        limit: String,
    },
    /// The media of the agent OS cannot be built.
    #[error("cannot create the media of the agent OS")]
    Media(#[source] netboot::Error),
}
