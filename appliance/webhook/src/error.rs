//! Errors of requests for power control.

use std::time::Duration;

use http::StatusCode;
use stdx::Hint;

/// Error of a request for power control. No text contains a credential or the content of a
/// response beyond a short message of the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL or a header that the owner wrote is not valid.
    #[error("{field} is not valid: {reason}")]
    Invalid {
        /// Field of the options.
        field: &'static str,
        /// Difference from a valid value.
        reason: String,
    },
    /// The server cannot be reached, or closed the connection.
    #[error("cannot reach {server}: {reason}")]
    Unreachable {
        /// Host and port of the URL.
        server: String,
        /// Error of the connection, with its causes.
        reason: String,
    },
    /// The server has not answered in time.
    #[error("{server} has not answered within {} s", after.as_secs())]
    NoAnswer {
        /// Host and port of the URL.
        server: String,
        /// Time limit of a request.
        after: Duration,
    },
    /// The server refused the login.
    #[error("{server} refused the login")]
    Login {
        /// Host and port of the URL.
        server: String,
    },
    /// The server answered with a status other than success.
    #[error("{server} answered {status} to {what}")]
    Status {
        /// Host and port of the URL.
        server: String,
        /// Name of the request, such as `getPowerState` or `on`.
        what: String,
        /// Status of the response.
        status: StatusCode,
    },
    /// The server reported an error of its own.
    #[error("{server} refused {what}: {message}")]
    Refused {
        /// Host and port of the URL.
        server: String,
        /// Name of the request, such as `getPowerState` or `on`.
        what: String,
        /// Message of the server, of limited length.
        message: String,
    },
    /// The response is too large, or not what the interface specifies.
    #[error("{server} sent an unusable response to {what}: {reason}")]
    Response {
        /// Host and port of the URL.
        server: String,
        /// Name of the request, such as `getPowerState` or `on`.
        what: String,
        /// Difference from a usable response.
        reason: String,
    },
    /// The interface has no request for this.
    #[error("{driver} cannot {what}")]
    Unsupported {
        /// Name of the driver or preset.
        driver: String,
        /// Attempt, such as `shut down`.
        what: &'static str,
    },
}

impl Error {
    /// Returns true if the server refused the login. Repeated logins may lock the account.
    pub fn refuses_login(&self) -> bool {
        matches!(self, Self::Login { .. })
    }

    /// Returns true if the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::NoAnswer { .. } => true,
            Self::Status { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            _ => false,
        }
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::Invalid { .. } => "correct connection.providerOptions of the Machine",
            Self::Unreachable { .. } | Self::NoAnswer { .. } => {
                "check that the server runs and that the box reaches it; a certificate that is not \
                 of a public authority needs insecureTLS"
            }
            Self::Login { .. } => "correct the Secret of the Machine",
            Self::Unsupported { .. } => "use another power action, or switch the machine by hand",
            Self::Status { .. } | Self::Refused { .. } | Self::Response { .. } => return None,
        })
    }
}
