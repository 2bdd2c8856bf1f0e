//! Error type of patches. The API sends a `Status` with the same reason and message.

/// Reason of a refusal, named as in `meta/v1 Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The patch is not valid in its format (HTTP 400).
    BadRequest,
    /// The patch cannot be applied to the object (422).
    Invalid,
    /// The patch or its result exceeds a limit (413).
    RequestEntityTooLarge,
}

/// Refusal of a patch; the message is for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatchError {
    /// Reason, on which clients branch.
    pub reason: Reason,
    /// Message for users, as upstream words it.
    pub message: String,
}

impl PatchError {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// Makes the error for a patch that cannot be applied, with upstream's message.
    pub(crate) fn rejected() -> Self {
        Self::new(Reason::Invalid, "the server rejected our request due to an error in our request")
    }
}
