//! Errors of the preparation and the copy.

use std::io;

use stdx::Hint;
use thiserror::Error;

use crate::copy::Failure as CopyFailure;
use crate::volume::Failure as VolumeFailure;

/// Hint for a missing or not valid signature.
const DOWNLOAD_AGAIN: &str = "download all files of the release again, from one source; --key \
                              names the keys of authors whose releases you accept";

/// Reason why an image cannot be written.
#[derive(Debug, Error)]
pub enum FlashError {
    /// A file cannot be read.
    #[error("cannot read {file}")]
    Read {
        /// Path of the file.
        file: String,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The content of a file is not valid.
    #[error("cannot use {file}: {why}")]
    Content {
        /// Path of the file.
        file: String,
        /// Cause, with the line if there is one.
        why: String,
    },
    /// No accepted author signed the file.
    #[error("cannot trust {file}: {why}")]
    Untrusted {
        /// Path of the file.
        file: String,
        /// Cause, as a phrase.
        why: String,
    },
    /// The disk has an incomplete image, and does not boot.
    #[error("cannot flash the disk (the disk has no system now): {0}")]
    Copy(#[from] CopyFailure),
    /// The disk has the image, and no configuration.
    #[error("cannot configure the disk, which is now a box without configuration: {0}")]
    Configure(#[from] VolumeFailure),
}

impl Hint for FlashError {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::Read { .. } => return None,
            Self::Content { .. } => "correct the file and run the command again",
            Self::Untrusted { .. } => DOWNLOAD_AGAIN,
            Self::Copy(_) => "run the command again; if the disk fails twice, take another disk",
            Self::Configure(_) => {
                "copy the file as box.toml onto the disk's volume TINBOX, or run the command again"
            }
        })
    }
}
