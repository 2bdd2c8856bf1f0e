//! Errors of other crates as errors of the API.

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
