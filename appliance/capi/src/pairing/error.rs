//! Errors of pairing and unpairing, for the command line.

use objects::ObjectError;
use stdx::Hint;

use crate::components::PAIRING_NAMESPACE;
use crate::remote::KubeconfigError;

/// Error of pairing or unpairing.
#[derive(Debug, thiserror::Error)]
pub enum PairingError {
    /// The kubeconfig of the administrator cannot be used.
    #[error("cannot use the kubeconfig of the management cluster: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// A request to the management cluster failed.
    #[error("cannot {what} in the management cluster: {source}")]
    Api {
        /// Attempt: `create Role a`.
        what: String,
        /// Error of the request.
        source: ObjectError,
    },
    /// Another user could use the identity of the box.
    #[error(
        "RoleBinding {binding} gives other users rights in the namespace {PAIRING_NAMESPACE} of \
         the management cluster"
    )]
    ForeignRights {
        /// Name of the RoleBinding.
        binding: String,
    },
}

impl Hint for PairingError {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Kubeconfig(error) => error.hint(),
            Self::Api { source, .. } => source.hint(),
            Self::ForeignRights { .. } => Some(
                "delete the RoleBinding: who has rights in this namespace could read the Secrets \
                 that the box may read; or create the credential yourself: --credential FILE",
            ),
        }
    }
}
