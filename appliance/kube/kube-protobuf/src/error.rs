//! What can be wrong with a body.

/// Why a body could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The four bytes every body begins with are not there.
    #[error("the body does not begin with the Kubernetes protobuf prefix")]
    NoPrefix,
    /// Lengths, tags or wire types that do not fit.
    #[error("cannot read the protobuf message: {0}")]
    Malformed(&'static str),
    /// Deeper, or more, than is read.
    #[error("the protobuf message has more than {limit} {what}")]
    TooMuch {
        /// What there is too much of.
        what: &'static str,
        /// The most that is read.
        limit: usize,
    },
    /// No table for the kind.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// A value that its field cannot have.
    #[error("cannot read the field {field}: {why}")]
    Field {
        /// The field's JSON name.
        field: String,
        /// What is wrong with its value.
        why: &'static str,
    },
}

impl Error {
    pub(crate) fn field(field: &str, why: &'static str) -> Self {
        Self::Field { field: field.to_owned(), why }
    }
}
