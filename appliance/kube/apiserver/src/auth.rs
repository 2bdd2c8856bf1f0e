//! Who may come in, and how the door is locked: tokens, certificates, the first administrator.

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

/// What can go wrong with keys, certificates, tokens and the listening socket.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the state directory.
    #[error("cannot {attempted} {}", path.display())]
    File {
        /// `read`, `write`, `create`.
        attempted: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A line of the token file.
    #[error("line {line} of {} is not a token's hash and a user", path.display())]
    TokenLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A key or certificate could not be made.
    #[error("cannot make the {what}")]
    Certificate {
        /// Which one.
        what: &'static str,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// A key or certificate file does not hold what it should.
    #[error("cannot read the key or certificate in {}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// TLS cannot be set up with our certificate.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// The check of client certificates cannot be set up.
    #[error("cannot set up the check of client certificates")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
    /// The key of ServiceAccount tokens is none.
    #[error("{} does not hold a P-256 key", path.display())]
    SigningKey {
        /// The file.
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

    /// True if the disk had no room.
    fn is_full(&self) -> bool {
        matches!(self, Self::File { source, .. } if stdx::is_full(source))
    }
}

#[cfg(test)]
mod tests;
