//! Errors of Intel AMT, in words and by class.

mod return_value;

use std::io;
use std::time::Duration;

use stdx::Hint;

use http_digest::ChallengeError;

use crate::Fingerprint;
use crate::message::{Fault, Malformed};
use crate::redirection::RedirectionError;

pub use return_value::{ReturnTable, ReturnValue};

/// Error of a management engine or of the network path to it.
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
    /// The machine refused the connection: the port is closed.
    #[error("port {port} is closed")]
    Closed {
        /// TCP port of the connection.
        port: u16,
        /// True if the port is the one without TLS.
        is_plain: bool,
    },
    /// No connection in time: the management engine is asleep, has no power or no network.
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
    /// The firmware has no TLS version or cipher suite that the box accepts.
    #[error("too old for TLS: the firmware and the box share no TLS version and cipher suite")]
    TooOldForTls {
        /// Error of the TLS handshake.
        reason: String,
    },
    /// The TLS handshake failed for another reason.
    #[error("the TLS handshake failed: {reason}")]
    Tls {
        /// Error of the TLS handshake.
        reason: String,
    },
    /// The certificate is not the expected one.
    #[error("the TLS certificate changed: expected {expected}, found {found}")]
    Pin {
        /// Fingerprint that was expected.
        expected: Fingerprint,
        /// Fingerprint of the certificate that the machine sent.
        found: Fingerprint,
    },
    /// The connection ended before the answer, after the request was sent.
    #[error("the connection ended before the answer to {step}: {reason}")]
    Lost {
        /// Name of the request.
        step: String,
        /// Error of the connection.
        reason: String,
    },
    /// The request was sent, and no answer came in time.
    #[error("no answer to {step} within {:.1} s", after.as_secs_f32())]
    Timeout {
        /// Name of the request, or of the wait.
        step: String,
        /// Time limit of the request or wait.
        after: Duration,
    },
    /// The firmware rejected user name or password.
    #[error("the user name or password of user {username:?} was rejected")]
    WrongPassword {
        /// User name that was rejected.
        username: String,
    },
    /// The firmware requires a login that this driver does not have.
    #[error("cannot log in")]
    Challenge(#[from] ChallengeError),
    /// The login is right, but the user lacks the permission.
    #[error("the user {username:?} does not have the permission for {step}")]
    Forbidden {
        /// User name of the login.
        username: String,
        /// Name of the request.
        step: String,
    },
    /// The firmware answered with an HTTP error instead of SOAP.
    #[error("{step} was refused with HTTP status {status}: {text}")]
    Http {
        /// Name of the request.
        step: String,
        /// HTTP status code of the answer.
        status: u16,
        /// Text of the answer, shortened.
        text: String,
    },
    /// The firmware answered with a SOAP fault.
    #[error("{step} was refused: {fault}")]
    Fault {
        /// Name of the request.
        step: String,
        /// Fault of the firmware.
        fault: Fault,
    },
    /// A method returned another value than success.
    #[error("{step} was refused: {value}")]
    Refused {
        /// Name of the method.
        step: String,
        /// Value that the method returned.
        value: ReturnValue,
    },
    /// The firmware refused a request because a user must consent at the machine's screen.
    #[error("the firmware requires the consent of a user at the machine's screen")]
    Consent {
        /// Error of the request.
        #[source]
        source: Box<Error>,
    },
    /// The firmware or the machine does not offer the function now.
    #[error("{what}: {reason}")]
    Unsupported {
        /// Function that was requested.
        what: &'static str,
        /// Reason, as a clause.
        reason: &'static str,
    },
    /// The firmware may have executed a request that must not be repeated.
    #[error("the firmware did not confirm the request, and may have executed it")]
    Unconfirmed {
        /// Error of the missing answer.
        #[source]
        source: Box<Error>,
    },
    /// The serial console cannot be opened.
    #[error("cannot open the serial console")]
    Console(#[from] RedirectionError),
    /// The machine is changing its power state.
    #[error("the power state is changing (state {state})")]
    Changing {
        /// Number of the state (CIM_AssociatedPowerManagementService).
        state: u32,
    },
    /// The answer is not valid.
    #[error("the answer to {step} is not valid")]
    Malformed {
        /// Name of the request.
        step: String,
        /// Reason why the answer is not valid.
        #[source]
        source: Malformed,
    },
}

impl Error {
    /// Returns true if the firmware refused the login. Repeated logins may lock the account.
    pub fn refuses_login(&self) -> bool {
        matches!(
            self,
            Self::WrongPassword { .. }
                | Self::Forbidden { .. }
                | Self::Challenge(_)
                | Self::Console(RedirectionError::WrongPassword)
        )
    }

    /// Returns true if the same call may succeed later. After [`Error::Unconfirmed`], the state of
    /// the machine must be read before the call.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Resolve { .. }
            | Self::Closed { .. }
            | Self::NoAnswer { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Lost { .. }
            | Self::Timeout { .. }
            | Self::Changing { .. }
            | Self::Unconfirmed { .. }
            | Self::Malformed { .. } => true,
            Self::Http { status, .. } => *status >= 500,
            Self::Fault { fault, .. } => fault.is_busy(),
            Self::Refused { value, .. } => value.is_busy(),
            Self::Console(error) => error.is_transient(),
            Self::Consent { .. }
            | Self::TooOldForTls { .. }
            | Self::Pin { .. }
            | Self::WrongPassword { .. }
            | Self::Challenge(_)
            | Self::Forbidden { .. }
            | Self::Unsupported { .. } => false,
        }
    }

    /// Returns true if the firmware may have received the request, and its result is unknown.
    pub fn is_indeterminate(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Timeout { .. } | Self::Malformed { .. })
            || matches!(self, Self::Http { status, .. } if *status != 400)
    }

    /// Returns true if the class, the instance or the operation does not exist in this firmware.
    /// AMT 10 answers HTTP 400 to the enumeration of some classes.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Fault { fault, .. } => fault.is_absent(),
            Self::Http { status, .. } => *status == 400,
            _ => false,
        }
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::Closed { is_plain: true, .. } => {
                "check that AMT is activated in the firmware setup; AMT 16.1 and newer accept only \
                 TLS (port 16993, hostScheme https)"
            }
            Self::Closed { is_plain: false, .. } => {
                "check that AMT is activated in the firmware setup; AMT 10 and older, and machines \
                 in Small Business Mode, have no TLS (port 16992, hostScheme http)"
            }
            Self::NoAnswer { .. } => {
                "check mains, cable and address; the firmware setup must keep the management \
                 engine on in S3-S5, and deep sleep (ErP) must be off"
            }
            Self::TooOldForTls { .. } => {
                "AMT 12 and older have only cipher suites without forward secrecy: use hostScheme \
                 http for this machine on an isolated network, or update its firmware"
            }
            Self::Tls { .. } => {
                "AMT 12 and older may end the connection when no cipher suite is shared: use \
                 hostScheme http for such a machine on an isolated network"
            }
            Self::Pin { .. } => {
                "after AMT was activated again, write the new fingerprint to the key \
                 certificateFingerprint of the Secret; otherwise another device answers at this \
                 address"
            }
            Self::Consent { .. } => {
                "switch user consent off in the firmware setup; in client control mode it is \
                 always on, so AMT must be activated in admin control mode"
            }
            Self::WrongPassword { .. } | Self::Console(RedirectionError::WrongPassword) => {
                "correct the Secret; the firmware locks the account for a while after some wrong \
                 passwords"
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stdx::{Hint as _, with_hint};

    use super::Error;
    use crate::{ReturnTable, ReturnValue};

    #[test]
    fn errors_say_the_cause_and_the_way_out() {
        let old = Error::TooOldForTls { reason: "handshake failure".into() };
        assert!(old.to_string().starts_with("too old for TLS"), "{old}");
        assert!(with_hint(&old).contains("hostScheme http"), "{}", with_hint(&old));
        let asleep = Error::NoAnswer { after: Duration::from_secs(10) };
        assert!(asleep.is_transient() && asleep.hint().unwrap().contains("S3-S5"));
        let refused = Error::Refused {
            step: "CIM_PowerManagementService.RequestPowerStateChange".into(),
            value: ReturnValue { value: 2, table: ReturnTable::State },
        };
        assert!(refused.to_string().ends_with("unknown error (DMTF)"), "{refused}");
        assert!(!refused.is_transient() && !refused.is_indeterminate());
        let wrong = Error::WrongPassword { username: "admin".into() };
        assert!(wrong.refuses_login() && !wrong.is_transient());
    }
}
