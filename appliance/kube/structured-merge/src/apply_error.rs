//! Errors of writes that determine or change the ownership of fields.

use crate::conflict::Conflicts;

/// Reason why an apply is rejected, or the ownership of a write cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields that the apply would change.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The configuration is of another kind or version, or contains `managedFields`.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration or the object does not match its schema.
    #[error("{0}")]
    Failed(String),
}
