//! Errors of the folder on another server.

use std::io;
use std::time::Duration;

use http::StatusCode;
use stdx::Hint;

/// Reason why a backup was not stored. No text contains a credential.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The URL, the login or the fingerprint is not valid.
    #[error("{0}")]
    Options(String),
    /// The file of the backup cannot be read.
    #[error("cannot read the backup")]
    File(#[source] io::Error),
    /// The server cannot be reached, or its certificate is not the expected one.
    #[error("cannot reach {host}: {reason}")]
    Unreachable {
        /// Host and port of the URL.
        host: String,
        /// Error of the connection, with its causes.
        reason: String,
    },
    /// The server has not answered in time.
    #[error("{host} has not answered within {} min", after.as_secs() / 60)]
    NoAnswer {
        /// Host and port of the URL.
        host: String,
        /// Time limit of a request.
        after: Duration,
    },
    /// The server refused the request.
    #[error("{host} answered {status}")]
    Status {
        /// Host and port of the URL.
        host: String,
        /// Status of the response.
        status: StatusCode,
    },
}

impl Hint for TargetError {
    fn hint(&self) -> Option<&str> {
        let Self::Status { status, .. } = self else { return None };
        Some(match *status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                "check username and password, and that the user may write there"
            }
            StatusCode::NOT_FOUND | StatusCode::CONFLICT => {
                "create the folder of the URL on the server"
            }
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
                "the server must accept files by PUT: switch WebDAV on"
            }
            StatusCode::INSUFFICIENT_STORAGE | StatusCode::PAYLOAD_TOO_LARGE => {
                "make space on the server, or raise its limit"
            }
            status if status.is_redirection() => "use the URL to which the server redirects",
            _ => return None,
        })
    }
}
