//! Puts together what the box serves (the agent's initramfs) and what the box is: its disk image,
//! update bundles, and what is published with them.
//!
//! Never: the network, or anything that differs between two builds of the same bytes (times,
//! owners, order). Disk images of operating systems are made by the scripts in `os/`,
//! kernels by those in `kernel/`, programs by cargo or by Buildroot.
//! Enter at [`agent_initramfs`] and [`Cpio`] for the agent OS, [`disk::assemble`],
//! [`bundle::write`] and [`release::Release`] for the box, [`Budget`] for the sizes of both.

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

/// What went wrong while assembling an image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that goes into the image cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The result cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A program this build needs did not start.
    #[error("cannot run {program} (package {package})")]
    Program {
        /// Its name.
        program: &'static str,
        /// The Debian package that holds it.
        package: &'static str,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A program this build needs ended badly.
    #[error("{program} ended with {status} on {}", path.display())]
    Ended {
        /// Its name.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// What it worked on.
        path: PathBuf,
    },
    /// A program this build needs did not do it.
    #[error("{program} ended with {status} on {}: {said}", path.display())]
    Refused {
        /// Its name.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// What it worked on.
        path: PathBuf,
        /// Its last words.
        said: String,
    },
    /// Something outgrew the place for it on the box's disk.
    #[error(
        "{what} has {size}, and the box's disk has room for {limit} (image/src/disk/layout.rs)"
    )]
    NoRoom {
        /// What it is.
        what: &'static str,
        /// Its size, as text.
        size: String,
        /// The room, as text.
        limit: String,
    },
    /// The partition table cannot be written.
    #[error("cannot write the partition table: {0}")]
    Table(String),
    /// The key for signing cannot be used.
    #[error(transparent)]
    Key(#[from] ::release::Error),
    /// A list of components that cannot be understood.
    #[error("{} does not say what the image is made of: {why}", path.display())]
    Components {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The program would not start as process 1: it is another processor's, or wants a C library.
    #[error("{} is not a static ELF program for {arch}: {reason}", path.display())]
    NotStatic {
        /// The file.
        path: PathBuf,
        /// The image's processor.
        arch: Arch,
        /// What its header says.
        reason: &'static str,
    },
    /// The loader would find nothing to start.
    #[error("{} is no Linux kernel for {arch}", path.display())]
    NotAKernel {
        /// The file.
        path: PathBuf,
        /// The image's processor.
        arch: Arch,
    },
    /// The format keeps sizes in 32 bits.
    #[error("{name} has {size} bytes, more than a cpio archive can hold")]
    TooLarge {
        /// The name inside the archive.
        name: String,
        /// Its size.
        size: usize,
    },
    /// The zstd library refused.
    #[error("cannot compress")]
    Compress {
        /// Its reason.
        #[source]
        source: io::Error,
    },
    /// Something outgrew what the design allows.
    #[error("{what} has {total}, over its budget of {limit}")]
    OverBudget {
        /// What it is.
        what: &'static str,
        /// The sum of its files, as text.
        total: String,
        /// The limit, as text.
        limit: String,
    },
    /// The media of the agent OS cannot be made.
    #[error("cannot make the media of the agent OS")]
    Media(#[source] netboot::Error),
}
