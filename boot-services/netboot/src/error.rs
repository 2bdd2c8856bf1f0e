//! Errors that stop a server of this crate or prevent a medium from being built.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Failure to start or to continue a server, or to build a medium. The failure of a single transfer
/// is not an error of the server; the [`Observer`](crate::Observer) receives it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The TFTP socket could not be opened or bound.
    #[error("could not open the TFTP socket on {address}")]
    Bind {
        /// Local address and port of the socket.
        address: SocketAddr,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// The TFTP socket stopped working.
    #[error("could not receive from the TFTP socket")]
    Receive(#[source] io::Error),
    /// The kernel arguments of a machine are longer than the 1024 characters that a medium
    /// reserves.
    #[error("the kernel arguments have {length} characters, a medium has space for 1024")]
    ArgumentsTooLong {
        /// Length of all arguments in characters, spaces included.
        length: usize,
    },
    /// A boot loader would change or cut off a kernel argument.
    #[error(
        "the kernel argument {name} has a character that boot loaders do not pass on (one of ; & \
         | < > $, or not printable ASCII)"
    )]
    Argument {
        /// Name of the argument: the text before its equals sign.
        name: String,
    },
    /// The file does not contain [`iso::MAGIC`](crate::iso::MAGIC), so it cannot be patched.
    #[error("{name} has no space for kernel arguments")]
    NoPlace {
        /// File name of the medium.
        name: String,
    },
    /// The EFI stub cannot take further sections, so no unified kernel image for UEFI machines can
    /// be built from it.
    #[error("cannot use the EFI stub: {reason}")]
    Stub {
        /// Reason, from the checks of the stub's PE header.
        reason: &'static str,
    },
    /// A part of a medium is larger than the size fields of its format allow.
    #[error("cannot build the boot medium: one part has {length} bytes, the limit is 4 GiB")]
    MediumTooLarge {
        /// Size of the part in bytes.
        length: u64,
    },
    /// A file of the artifact directory cannot be read or written.
    #[error("cannot use the artifact {}", path.display())]
    Artifact {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
}
