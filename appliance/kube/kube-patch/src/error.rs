//! The error type of patches, which the API sends as a `Status` of the same reason.

/// Reason of a refusal, in the words of `meta/v1 Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The patch is not of its format.
    BadRequest,
    /// The patch does not fit the object.
    Invalid,
    /// The patch is too large, or copies too much.
    RequestEntityTooLarge,
}

/// Refusal of a patch; the message is for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatchError {
    /// Reason, on which clients branch.
    pub reason: Reason,
    /// Message in upstream's words.
    pub message: String,
}

impl PatchError {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// Makes the refusal of a patch that cannot be applied, as upstream words it.
    pub(crate) fn rejected() -> Self {
        Self::new(Reason::Invalid, "the server rejected our request due to an error in our request")
    }
}
