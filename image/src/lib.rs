//! Puts together what the box serves: the agent's initramfs, and the sizes it must keep to.
//!
//! Never: the network, or anything that differs between two builds of the same bytes (times,
//! owners, order). Disk images of operating systems are made by the scripts in `os/`,
//! kernels by those in `kernel/`.
//! Enter at [`agent_initramfs`], [`Cpio`] and [`Budget`].

mod budget;
mod cpio;
mod initramfs;

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

pub use budget::{AGENT_OS_BUDGET, Budget};
pub use cpio::Cpio;
pub use initramfs::{MODULES_FOLDER, agent_initramfs, compress};

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
    /// The agent would not start as PID 1: there is no C library in the initramfs.
    #[error("{} is not a static x86-64 or arm64 ELF program: {reason}", path.display())]
    NotStatic {
        /// The file.
        path: PathBuf,
        /// What its header says.
        reason: &'static str,
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
    #[error("cannot compress the initramfs")]
    Compress {
        /// Its reason.
        #[source]
        source: io::Error,
    },
    /// Kernel and initramfs outgrew what the design allows.
    #[error("the agent OS has {total}, over its budget of {limit}")]
    OverBudget {
        /// The sum of its files, as text.
        total: String,
        /// The limit, as text.
        limit: String,
    },
    /// The media of the agent OS cannot be made.
    #[error("cannot make the media of the agent OS")]
    Media(#[source] netboot::Error),
}
