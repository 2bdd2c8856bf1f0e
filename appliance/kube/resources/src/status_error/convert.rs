//! Conversion of errors of other crates to API errors.

use kube_patch::PatchError;

use super::{Reason, StatusError};

impl From<PatchError> for StatusError {
    fn from(error: PatchError) -> Self {
        let reason = match error.reason {
            kube_patch::Reason::BadRequest => Reason::BadRequest,
            kube_patch::Reason::Invalid => Reason::Invalid,
            kube_patch::Reason::RequestEntityTooLarge => Reason::RequestEntityTooLarge,
        };
        Self::new(reason, error.message)
    }
}

/// Converts a store error to the client's error; `attempted` is the operation, for the message.
pub(crate) fn failed(attempted: &str, error: &store::Error) -> StatusError {
    match error {
        store::Error::Compacted { after, .. } => StatusError::expired(*after),
        store::Error::Lagged { at, .. } => StatusError::expired(*at),
        store::Error::Future { after, current } => StatusError::from_the_future(*after, *current),
        store::Error::Storage { .. } | store::Error::Refusing { .. } => {
            StatusError::internal(&format!("{attempted}: {}", deepest(error)), error)
        }
        other => StatusError::internal(attempted, other),
    }
}

/// Returns the text of the root cause of an error, such as `No space left on device`.
fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
