//! Errors of encoding and decoding protobuf bodies.

/// Reason why a body cannot be decoded or encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The body does not begin with the four bytes of the prefix.
    #[error("the body does not begin with the Kubernetes protobuf prefix")]
    NoPrefix,
    /// A length, tag or wire type is invalid.
    #[error("cannot read the protobuf message: {0}")]
    Malformed(&'static str),
    /// The body exceeds a limit on depth or number of values.
    #[error("the protobuf message has more than {limit} {what}")]
    TooMuch {
        /// Limited unit, such as `values`.
        what: &'static str,
        /// Maximum number of the unit.
        limit: usize,
    },
    /// The catalog has no type for the kind.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// API version: `v1` or `group/version`.
        api_version: String,
        /// Name of the kind.
        kind: String,
    },
    /// A field has an invalid value.
    #[error("cannot read the field {field}: {why}")]
    Field {
        /// JSON name of the field.
        field: String,
        /// Reason why the value is invalid.
        why: &'static str,
    },
}

impl Error {
    pub(crate) fn field(field: &str, why: &'static str) -> Self {
        Self::Field { field: field.to_owned(), why }
    }
}
