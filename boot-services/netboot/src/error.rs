//! Everything that can stop one of this crate's servers, or keep a medium from being made.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A server could not start or could not go on. A single transfer's failure is not an error of the
/// server: it is told to the [`Observer`](crate::Observer).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The TFTP socket could not be made.
    #[error("could not open the TFTP socket on {address}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The TFTP socket stopped working.
    #[error("could not receive from the TFTP socket")]
    Receive(#[source] io::Error),
    /// What a machine is to be told does not fit into its medium.
    #[error("the kernel arguments have {length} characters, a medium has room for 1024")]
    ArgumentsTooLong {
        /// Characters, spaces included.
        length: usize,
    },
    /// A kernel argument would not arrive as it was written.
    #[error(
        "the kernel argument {name} has a character that a boot loader would not pass on \
         (one of ; & | < > $, or no printable ASCII)"
    )]
    Argument {
        /// What stands before its equals sign.
        name: String,
    },
    /// A file is no medium that can be told what to boot.
    #[error("{name} keeps no place for kernel arguments")]
    NoPlace {
        /// Its name.
        name: String,
    },
    /// What should start the agent OS on a UEFI machine cannot be given a kernel.
    #[error("the EFI stub cannot be used: {reason}")]
    Stub {
        /// What its header says.
        reason: &'static str,
    },
    /// A part of a medium is larger than its format counts.
    #[error("{length} bytes are more than a medium can hold")]
    MediumTooLarge {
        /// Its bytes.
        length: u64,
    },
    /// A file of the artifact directory cannot be read or written.
    #[error("cannot use the artifact {}", path.display())]
    Artifact {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}
