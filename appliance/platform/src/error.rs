//! What the host refused, as a sentence for an owner.

use std::io;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused.
    #[error("cannot {doing}")]
    Io {
        /// The step.
        doing: String,
        /// Its reason.
        #[source]
        source: io::Error,
    },
    /// The kernel refused a change of the network.
    #[error("cannot {doing}")]
    Netlink {
        /// The change.
        doing: String,
        /// Its reason.
        #[source]
        source: Box<rtnetlink::Error>,
    },
    /// The disk has no partition of this name.
    #[error("cannot find the partition {name:?} on the disk that this system lies on")]
    NoPartition {
        /// Its name, as flashed.
        name: String,
    },
    /// A part of an update is larger than its place.
    #[error(
        "the release's {content} has {}, and this box's disk has room for {}\n\
         hint: flash the box anew with that release, from a backup",
        stdx::bytes(*size), stdx::bytes(*room)
    )]
    NoRoom {
        /// The part.
        content: crate::bundle::Content,
        /// Its bytes.
        size: u64,
        /// Bytes of the place.
        room: u64,
    },
    /// No interface, no link, or no answer.
    #[error("no network address: {reason}")]
    NoAddress {
        /// What was tried.
        reason: String,
    },
}

impl Error {
    /// Says what was attempted of an I/O error.
    pub(crate) fn io<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source: source.into() }
    }

    /// Says what was attempted of a refusal by netlink.
    pub(crate) fn netlink(doing: impl Into<String>) -> impl FnOnce(rtnetlink::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Netlink { doing, source: Box::new(source) }
    }
}
