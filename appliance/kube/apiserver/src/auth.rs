//! Authentication: tokens, certificates and the first administrator.

mod access;
mod admin_tokens;
mod pki;
pub(crate) mod private_file;
mod service_account;
mod signing;
mod token;
mod token_secrets;

use std::io;
use std::path::{Path, PathBuf};

pub use access::AdminAccess;
pub use admin_tokens::{AdminTokens, TokenError, TokenInfo};
pub use pki::Pki;
pub(crate) use service_account::MAX_SECONDS;
pub use service_account::ServiceAccountTokens;
pub use signing::SigningKey;
pub use token::Authenticator;
pub(crate) use token_secrets::TokenSecrets;

/// Errors of the API server's setup: keys, certificates, tokens and the listening socket.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Access to a file of the state directory failed.
    #[error("cannot {attempted} {}", path.display())]
    File {
        /// Attempted operation, for the message: `read`, `write`, `create`.
        attempted: &'static str,
        /// File on which the operation failed.
        path: PathBuf,
        /// Error from the operating system.
        #[source]
        source: io::Error,
    },
    /// The audit log could not be opened.
    #[error(transparent)]
    AuditLog(#[from] audit_log::AuditLogError),
    /// A line of the token file is invalid.
    #[error("line {line} of {} is not a token's hash and a user", path.display())]
    TokenLine {
        /// Path of the token file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
    /// A key or certificate could not be created.
    #[error("cannot create the {what}")]
    Certificate {
        /// Name of the key or certificate.
        what: &'static str,
        /// Error from the certificate library.
        #[source]
        source: rcgen::Error,
    },
    /// A key or certificate file has invalid content.
    #[error("cannot read the key or certificate in {}", path.display())]
    Pem {
        /// Path of the invalid file.
        path: PathBuf,
        /// Error from the PEM parser.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// TLS setup with the box's certificate failed.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// Setup of the client certificate verifier failed.
    #[error("cannot set up the check of client certificates")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
    /// The file `serviceaccount.key` contains a key of another type than P-256.
    #[error("{} does not hold a P-256 key", path.display())]
    SigningKey {
        /// Path of the key file.
        path: PathBuf,
    },
    /// The listening socket failed.
    #[error("cannot accept connections")]
    Accept(#[source] io::Error),
}

impl Error {
    pub(crate) fn file(attempted: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { attempted, path: path.to_owned(), source }
    }

    /// Returns true if an operation on a file failed because the disk is full.
    fn is_full(&self) -> bool {
        matches!(self, Self::File { source, .. } if stdx::is_full(source))
    }
}

#[cfg(test)]
mod tests;
