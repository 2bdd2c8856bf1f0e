//! Errors of updates, with hints for the owner.

use platform::bundle;
use stdx::Hint;
use store::FreeSpace;

/// Reason why an update was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// Another update is under way or on trial. Only one update runs at a time.
    #[error("another update is under way")]
    Busy,
    /// The bundle is damaged, or its signature is not valid.
    #[error(transparent)]
    Bundle(bundle::Error),
    /// The owner's settings or the state of the box do not allow the request.
    #[error("{why}")]
    Unwanted {
        /// Reason, as a sentence without a full stop.
        why: String,
        /// Hint for the owner; `None` if there is none.
        hint: Option<&'static str>,
    },
    /// The disk has too little free space for the copy of the store that a newer release may need.
    #[error(
        "the box's disk is nearly full: {} are free, and {} are needed to convert the store for \
         a newer release",
        stdx::bytes(.0.free), stdx::bytes(.0.needed)
    )]
    NoRoom(FreeSpace),
    /// The disk or the boot loader's variables cannot be read or written.
    #[error(transparent)]
    Host(platform::Error),
    /// The record of the update cannot be written to the state folder.
    #[error("cannot save the update state")]
    Record(#[source] std::io::Error),
    /// The task of the update stopped unexpectedly.
    #[error("the update task stopped unexpectedly")]
    Ended,
}

impl Hint for UpdateError {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Busy => Some("`tinbox update status` shows the progress"),
            Self::Bundle(error) => error.hint(),
            Self::Unwanted { hint, .. } => *hint,
            Self::NoRoom(_) => Some("delete data that is not needed, then update"),
            Self::Host(error) => error.hint(),
            Self::Record(_) | Self::Ended => None,
        }
    }
}

impl UpdateError {
    pub(super) fn unwanted(why: impl Into<String>, hint: Option<&'static str>) -> Self {
        Self::Unwanted { why: why.into(), hint }
    }
}
