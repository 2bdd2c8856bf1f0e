//! Errors of the host, worded for the owner of the box.

use std::io;

use stdx::Hint;

/// Error of one operation on the host system.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call or file operation failed.
    #[error("cannot {doing}")]
    Io {
        /// Operation that failed, as a verb phrase.
        doing: String,
        /// Error that the kernel returned.
        #[source]
        source: io::Error,
    },
    /// The kernel refused a change of the network configuration.
    #[error("cannot {doing}")]
    Netlink {
        /// Change that failed, as a verb phrase.
        doing: String,
        /// Error that netlink returned.
        #[source]
        source: Box<rtnetlink::Error>,
    },
    /// The disk has no partition with this name.
    #[error("cannot find the partition {name:?} on the disk of this system")]
    NoPartition {
        /// Name of the partition as the image defines it.
        name: String,
    },
    /// A part of an update is larger than its partition or reserved space.
    #[error(
        "the {content} of the release has {}, but the box's disk has space for only {}",
        stdx::bytes(*size), stdx::bytes(*room)
    )]
    NoRoom {
        /// Part of the bundle that does not fit.
        content: crate::bundle::Content,
        /// Size of the part in bytes.
        size: u64,
        /// Space for the part in bytes.
        room: u64,
    },
    /// No interface exists, no link is up, or no DHCP server answered.
    #[error("no network address: {reason}")]
    NoAddress {
        /// Reason as a phrase, with the name of the interface.
        reason: String,
    },
}

impl Hint for Error {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::NoRoom { .. } => Some("back up the box, flash this release, restore the backup"),
            Self::Io { .. }
            | Self::Netlink { .. }
            | Self::NoPartition { .. }
            | Self::NoAddress { .. } => None,
        }
    }
}

impl Error {
    /// Converts an I/O error, with the name of the failed operation.
    pub(crate) fn io<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source: source.into() }
    }

    /// Converts an error of netlink, with the name of the failed operation.
    pub(crate) fn netlink(doing: impl Into<String>) -> impl FnOnce(rtnetlink::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Netlink { doing, source: Box::new(source) }
    }
}

/// Replaces control characters by spaces, because an environment variable cannot contain NUL and a
/// line of a report cannot contain a line feed.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}
