//! Errors of Redfish services, in words and by class.

use std::io;
use std::time::Duration;

use stdx::Hint;

use crate::Reason;

/// Error of a Redfish service or of the network path to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The host name cannot be resolved to an IP address.
    #[error("cannot find the IP address")]
    Resolve {
        /// Error of the resolver; `None` if the name has no address.
        #[source]
        source: Option<io::Error>,
    },
    /// The BMC refused the connection.
    #[error("port {port} is closed")]
    Closed {
        /// TCP port of the connection.
        port: u16,
    },
    /// No connection in time.
    #[error("no connection within {:.1} s", after.as_secs_f32())]
    NoAnswer {
        /// Time limit of all attempts.
        after: Duration,
    },
    /// The connection cannot be made for another reason.
    #[error("cannot connect")]
    Connect {
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The TLS handshake failed, or the certificate changed.
    #[error(transparent)]
    Tls(#[from] tls_pin::Error),
    /// The connection ended before the response, after the request was sent.
    #[error("the connection ended before the response to {step}: {reason}")]
    Lost {
        /// Method and path of the request.
        step: String,
        /// Error of the connection.
        reason: String,
    },
    /// The request was sent, and no response came in time.
    #[error("no response to {step} within {:.1} s", after.as_secs_f32())]
    Timeout {
        /// Method and path of the request, or name of the wait.
        step: String,
        /// Time limit of the request or wait.
        after: Duration,
    },
    /// The BMC rejected user name or password.
    #[error("the user name or password of user {username:?} was rejected")]
    WrongPassword {
        /// User name that was rejected.
        username: String,
    },
    /// The user name cannot be sent by HTTP Basic (RFC 7617 §2).
    #[error("the user name has a colon or control characters")]
    UserName,
    /// The BMC has no free session, and does not accept HTTP Basic either.
    #[error("the BMC has no free session for user {username:?}, and refuses HTTP Basic: {reason}")]
    SessionLimit {
        /// User name of the login.
        username: String,
        /// Message of the BMC.
        reason: Reason,
    },
    /// The login is right, but the user lacks the permission.
    #[error("the user {username:?} does not have the permission for {step}: {reason}")]
    Forbidden {
        /// User name of the login.
        username: String,
        /// Method and path of the request.
        step: String,
        /// Message of the BMC.
        reason: Reason,
    },
    /// The BMC redirects to another server, which gets no password.
    #[error("{step} was redirected to {location}, which gets no login")]
    Redirect {
        /// Method and path of the request.
        step: String,
        /// Header `Location`, at most 120 characters of it.
        location: String,
    },
    /// The response is not JSON.
    #[error("the response to {step} is not valid JSON: {reason}")]
    NotJson {
        /// Method and path of the request.
        step: String,
        /// Difference from valid JSON.
        reason: String,
    },
    /// A resource lacks what the request needs.
    #[error("{path} has no {what}")]
    Missing {
        /// Path of the resource.
        path: String,
        /// Name of the field, or of what the fields describe.
        what: &'static str,
    },
    /// The BMC manages no system of the name.
    #[error("the BMC has no system {wanted:?}; it has {found}")]
    NoSystem {
        /// Name in the options.
        wanted: String,
        /// Names of the systems that the BMC has.
        found: String,
    },
    /// The BMC manages several systems, and the options do not name one of them.
    #[error("the BMC has several systems: {found}")]
    SeveralSystems {
        /// Names of the systems.
        found: String,
    },
    /// The service refused the request.
    #[error("{step} was refused with HTTP status {status}: {reason}")]
    Refused {
        /// Method and path of the request.
        step: String,
        /// HTTP status code of the response.
        status: u16,
        /// Message of the service.
        reason: Reason,
        /// True if the service says that the same request may succeed later.
        is_busy: bool,
    },
    /// The service accepted the request, and its Task failed.
    #[error("{step} was accepted, and its task ended as {state}: {reason}")]
    TaskFailed {
        /// Method and path of the request.
        step: String,
        /// State of the Task (`TaskState`).
        state: String,
        /// Message of the Task.
        reason: Reason,
    },
    /// The machine or its firmware does not offer the function.
    #[error("{what} is not available: {reason}")]
    Unsupported {
        /// Function that was requested.
        what: String,
        /// Reason, as a clause.
        reason: String,
    },
    /// The service acknowledged a setting and still reports the old one.
    #[error("the BMC acknowledged {what}, and reports {found}")]
    NotApplied {
        /// Setting that was requested.
        what: String,
        /// Setting that the service reports.
        found: String,
    },
    /// The machine is changing its power state, or the BMC does not know the state.
    #[error("the power state is {state}, so {request} was not sent")]
    Changing {
        /// State that the service reports.
        state: String,
        /// Request that was not sent.
        request: &'static str,
    },
    /// The BMC may have executed a request that must not be repeated.
    #[error("the BMC did not confirm the request, and may have executed it")]
    Unconfirmed {
        /// Error of the missing response.
        #[source]
        source: Box<Error>,
    },
}

impl Error {
    /// Returns true if the BMC refused the login. Repeated logins may lock the account.
    pub fn refuses_login(&self) -> bool {
        matches!(self, Self::WrongPassword { .. } | Self::Forbidden { .. } | Self::UserName)
    }

    /// Returns true if the same call may succeed later. After [`Error::Unconfirmed`], the state of
    /// the machine must be read before the call.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Resolve { .. }
            | Self::Closed { .. }
            | Self::NoAnswer { .. }
            | Self::Connect { .. }
            | Self::Tls(tls_pin::Error::Tls { .. })
            | Self::Lost { .. }
            | Self::Timeout { .. }
            | Self::SessionLimit { .. }
            | Self::NotJson { .. }
            | Self::Changing { .. }
            | Self::NotApplied { .. }
            | Self::Unconfirmed { .. } => true,
            Self::Refused { status, is_busy, .. } => *is_busy || *status >= 500,
            Self::Tls(_)
            | Self::Missing { .. }
            | Self::WrongPassword { .. }
            | Self::UserName
            | Self::Forbidden { .. }
            | Self::Redirect { .. }
            | Self::NoSystem { .. }
            | Self::SeveralSystems { .. }
            | Self::TaskFailed { .. }
            | Self::Unsupported { .. } => false,
        }
    }

    /// Returns true if the BMC may have executed the request, and its result is unknown.
    pub fn is_indeterminate(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Timeout { .. })
    }

    /// Returns true if the resource does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404 | 405 | 410 | 501, .. })
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::Closed { .. } | Self::NoAnswer { .. } => {
                "check mains, cable and address of the BMC, and that Redfish is switched on in its \
                 settings; another port is port in connection.providerOptions.redfish"
            }
            Self::Tls(tls_pin::Error::Pin { .. }) => {
                "after the BMC got a new certificate, write its fingerprint to the key \
                 certificateFingerprint of the Secret; otherwise another device answers at this \
                 address"
            }
            Self::Tls(tls_pin::Error::TooOldForTls { .. }) => {
                "update the firmware of the BMC, or use IPMI for this machine"
            }
            Self::Tls(tls_pin::Error::Tls { .. }) => {
                "a BMC without TLS needs scheme http in connection.providerOptions.redfish"
            }
            Self::WrongPassword { .. } => {
                "correct the Secret; a BMC may lock the account after some wrong passwords"
            }
            Self::SessionLimit { .. } => {
                "close sessions of other programs in the BMC's web page; sessions also end when \
                 they are idle"
            }
            Self::Forbidden { .. } => "give the user the role Operator or Administrator",
            Self::Redirect { .. } => {
                "correct host, port and scheme of the Machine: the box follows no redirect to \
                 another server"
            }
            Self::NotJson { .. } => {
                "check that host and port are those of a BMC with Redfish, and restart the BMC if \
                 they are"
            }
            Self::NoSystem { .. } => "correct systemName in connection.providerOptions.redfish",
            Self::SeveralSystems { .. } => {
                "write the name of this machine's system to systemName in \
                 connection.providerOptions.redfish"
            }
            Self::NotApplied { .. } => "restart the BMC if this happens again",
            _ => return None,
        })
    }
}
