//! Errors of a BMC or of the network path, and their classification as transient.

pub(crate) mod refusal;
mod status;

use std::io;
use std::str::FromStr;
use std::time::Duration;

use stdx::Hint;

pub use self::refusal::{CompletionCode, Refusal};
pub use self::status::{Malformed, SessionStatus};
use crate::endpoint::{Address, CipherSuite};

/// Hint of a login that found no free session.
const SESSIONS_IN_USE: &str =
    "other clients hold the sessions of the BMC, which end after a minute idle";

/// Error of a BMC or of the network path to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The host name of the BMC cannot be resolved to an IP address.
    #[error("cannot find the IP address of BMC {address}")]
    Resolve {
        /// Address of the BMC.
        address: Address,
        /// Error of the resolver; `None` if the name has no address.
        #[source]
        source: Option<io::Error>,
    },
    /// The box cannot send to the address of the BMC.
    #[error("cannot send to BMC {address}")]
    Socket {
        /// Address of the BMC.
        address: Address,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The BMC never responded: no power, no cable, a firewall, or a wrong address.
    #[error(
        "BMC {address} did not respond to {step} within {:.1} s: is it powered, connected and is \
         IPMI over LAN enabled?", after.as_secs_f32()
    )]
    NoAnswer {
        /// Address of the BMC.
        address: Address,
        /// Request without a response.
        step: &'static str,
        /// Time limit of the request.
        after: Duration,
    },
    /// The BMC responded before, but not to this request.
    #[error("BMC {address} stopped responding at {step}, waited {:.1} s", after.as_secs_f32())]
    Timeout {
        /// Address of the BMC.
        address: Address,
        /// Request without a response.
        step: &'static str,
        /// Time limit of the request.
        after: Duration,
    },
    /// The BMC rejected the login: unknown user, missing permission, or wrong password.
    #[error("BMC {address} rejected the user name or password of user {username:?}")]
    WrongPassword {
        /// Address of the BMC.
        address: Address,
        /// User name that was rejected.
        username: String,
    },
    /// The user is valid, but lacks the operator privilege, which power commands need.
    #[error("BMC {address} does not give user {username:?} operator privilege: {status}")]
    Privilege {
        /// Address of the BMC.
        address: Address,
        /// User name that was rejected.
        username: String,
        /// Status that the BMC returned.
        status: String,
    },
    /// The BMC accepts none of the allowed cipher suites; a weaker suite is never tried.
    #[error("BMC {address} supports none of the allowed cipher suites ({allowed}): {reason}")]
    SuiteRefused {
        /// Address of the BMC.
        address: Address,
        /// Allowed suites, by number.
        allowed: String,
        /// Status that the BMC returned, or the suites that the BMC offers.
        reason: String,
    },
    /// The BMC refused the session, but not because of cipher suite, user or password.
    #[error("BMC {address} refused {step}: {status}")]
    SessionRefused {
        /// Address of the BMC.
        address: Address,
        /// Request that was refused.
        step: &'static str,
        /// Status that the BMC returned.
        status: SessionStatus,
    },
    /// The BMC received a command and refused it.
    #[error("BMC {address} refused {command}: {refusal}")]
    CommandRefused {
        /// Address of the BMC.
        address: Address,
        /// Name of the command in the IPMI standard.
        command: &'static str,
        /// Completion code that the BMC returned, with the number of the command.
        refusal: Refusal,
    },
    /// All datagrams from the BMC were invalid: too short, forged, or of another protocol.
    #[error("BMC {address} sent an invalid response to {step}")]
    Hostile {
        /// Address of the BMC.
        address: Address,
        /// Request to which the BMC sent the invalid response.
        step: &'static str,
        /// Reason why the last datagram is invalid.
        #[source]
        source: Malformed,
    },
    /// User name or password exceeds a limit of the protocol.
    #[error("cannot log in to BMC {address}: {reason}")]
    Credentials {
        /// Address of the BMC.
        address: Address,
        /// Exceeded limit, as a sentence.
        reason: &'static str,
    },
    /// The driver does not support the requested cipher suite.
    #[error("cannot use cipher suite {asked:?}: use 17 or 3")]
    UnknownSuite {
        /// Requested cipher suite, as text.
        asked: String,
    },
    /// Another client uses the serial console, of which a BMC has one session.
    #[error("the serial console of BMC {address} is in use by another client")]
    ConsoleBusy {
        /// Address of the BMC.
        address: Address,
    },
    /// Serial-over-LAN is switched off in the BMC.
    #[error("serial-over-LAN is switched off in BMC {address}")]
    ConsoleDisabled {
        /// Address of the BMC.
        address: Address,
    },
    /// Serial-over-LAN is a part of IPMI 2.0 only.
    #[error("the serial console needs IPMI 2.0, and BMC {address} has only IPMI 1.5")]
    ConsoleMissing {
        /// Address of the BMC.
        address: Address,
    },
    /// The BMC states that it has no IPMI 2.0, but has had sessions of IPMI 2.0.
    #[error(
        "BMC {address} had IPMI 2.0 before, and now reports only IPMI 1.5, which protects less: \
         the login was not sent"
    )]
    Downgrade {
        /// Address of the BMC.
        address: Address,
    },
    /// The BMC has only IPMI 1.5, and no way to log in that hides the password.
    #[error("BMC {address} has only IPMI 1.5 without MD5: the login was not sent")]
    NoAuthentication {
        /// Address of the BMC.
        address: Address,
    },
    /// The BMC has only IPMI 1.5, and does not authenticate the packets of its sessions.
    #[error("BMC {address} has only IPMI 1.5, and does not authenticate its messages")]
    Unauthenticated {
        /// Address of the BMC.
        address: Address,
    },
    /// The BMC knows the user and did not respond to the login: IPMI 1.5 has no other answer to a
    /// wrong password.
    #[error(
        "BMC {address} did not respond to the login of user {username:?} by IPMI 1.5, as after a \
         wrong password"
    )]
    LoginIgnored {
        /// Address of the BMC.
        address: Address,
        /// User name of the login.
        username: String,
    },
    /// The driver sent a command that must not be repeated, and got no response: the BMC may have
    /// executed the command.
    #[error("BMC {address} did not confirm {command}: the command may have been executed")]
    Unconfirmed {
        /// Address of the BMC.
        address: Address,
        /// Name of the command in the IPMI standard.
        command: &'static str,
        /// Error of the missing response.
        #[source]
        source: Box<Error>,
    },
}

impl Error {
    /// Returns true if the BMC refused the user. Repeated logins may lock the account.
    pub fn refuses_login(&self) -> bool {
        matches!(
            self,
            Self::WrongPassword { .. } | Self::Privilege { .. } | Self::LoginIgnored { .. }
        )
    }

    /// Returns true if the BMC did not respond, or sent no valid response.
    pub fn lacks_response(&self) -> bool {
        matches!(
            self,
            Self::Resolve { .. }
                | Self::Socket { .. }
                | Self::NoAnswer { .. }
                | Self::Timeout { .. }
                | Self::Hostile { .. }
                | Self::Unconfirmed { .. }
        )
    }

    /// Returns true if the same call may succeed later: no response, a busy BMC, or a damaged
    /// response. Wrong passwords and refused suites are permanent, and some BMCs lock the account
    /// after repeated logins. A command that the BMC may have executed must not be repeated.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Resolve { .. }
            | Self::Socket { .. }
            | Self::NoAnswer { .. }
            | Self::Timeout { .. }
            | Self::Hostile { .. }
            | Self::ConsoleBusy { .. } => true,
            Self::SessionRefused { status, .. } => status.is_transient(),
            Self::CommandRefused { refusal, .. } => refusal.is_transient(),
            Self::WrongPassword { .. }
            | Self::Privilege { .. }
            | Self::SuiteRefused { .. }
            | Self::Credentials { .. }
            | Self::UnknownSuite { .. }
            | Self::Unconfirmed { .. }
            | Self::Downgrade { .. }
            | Self::NoAuthentication { .. }
            | Self::Unauthenticated { .. }
            | Self::LoginIgnored { .. }
            | Self::ConsoleMissing { .. }
            | Self::ConsoleDisabled { .. } => false,
        }
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::ConsoleDisabled { .. } => {
                Some("enable serial-over-LAN for this user in the setup of the BMC")
            }
            Self::SessionRefused { status, .. } if status.is_transient() => Some(SESSIONS_IN_USE),
            Self::CommandRefused { refusal, .. } if refusal.lacks_session() => {
                Some(SESSIONS_IN_USE)
            }
            Self::Downgrade { .. } => Some(
                "check which device has this address and its firmware; a restart of the box \
                 permits IPMI 1.5 for this BMC",
            ),
            Self::NoAuthentication { .. } => {
                Some("enable MD5 on the LAN channel of the BMC, or update its firmware")
            }
            Self::Unauthenticated { .. } => {
                Some("enable per-message authentication on the LAN channel of the BMC")
            }
            Self::LoginIgnored { .. } => Some("correct the Secret"),
            Self::Privilege { .. } => {
                Some("give the user the privilege Operator on the LAN channel of the BMC")
            }
            Self::Unconfirmed { source, .. } => source.hint(),
            _ => None,
        }
    }
}

impl FromStr for CipherSuite {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.parse()
            .ok()
            .and_then(Self::from_id)
            .ok_or_else(|| Error::UnknownSuite { asked: text.chars().take(16).collect() })
    }
}
