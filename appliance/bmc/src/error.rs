//! Errors on the way to a BMC, and their classification as transient.

use std::io;
use std::time::Duration;

use crate::ipmi::{CompletionCode, Malformed, SessionStatus};
use crate::{Address, Power, PowerAction};

/// Error of a BMC or of the network path to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name of the BMC has no address.
    #[error("cannot find the IP address of BMC {address}")]
    Resolve {
        /// Address of the BMC.
        address: Address,
        /// Error of the resolver; `None` if the name has no address.
        #[source]
        source: Option<io::Error>,
    },
    /// The box itself cannot send to the address of the BMC.
    #[error("cannot send to BMC {address}")]
    Socket {
        /// Address of the BMC.
        address: Address,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The BMC sent no byte: it is switched off, unplugged, filtered, or has another address.
    #[error(
        "BMC {address} did not respond to {step} within {:.1} s: is it powered, connected and is \
         IPMI over LAN enabled?", after.as_secs_f32()
    )]
    NoAnswer {
        /// Address of the BMC.
        address: Address,
        /// Request that got no answer.
        step: &'static str,
        /// Time limit of the request.
        after: Duration,
    },
    /// The BMC stopped answering.
    #[error("BMC {address} stopped responding at {step}, waited {:.1} s", after.as_secs_f32())]
    Timeout {
        /// Address of the BMC.
        address: Address,
        /// Request that got no answer.
        step: &'static str,
        /// Time limit of the request.
        after: Duration,
    },
    /// The user is unknown, lacks the permission, or has another password.
    #[error("BMC {address} rejected the user name or password of user {username:?}")]
    WrongPassword {
        /// Address of the BMC.
        address: Address,
        /// User name that was rejected.
        username: String,
    },
    /// The user is valid, but lacks the privilege to switch power.
    #[error("BMC {address} does not give user {username:?} operator privilege: {status}")]
    Privilege {
        /// Address of the BMC.
        address: Address,
        /// User name that was rejected.
        username: String,
        /// Status of the BMC.
        status: String,
    },
    /// The BMC accepts none of the allowed suites; a weaker suite is never tried.
    #[error("BMC {address} supports none of the allowed cipher suites ({allowed}): {reason}")]
    SuiteRefused {
        /// Address of the BMC.
        address: Address,
        /// Allowed suites, by number.
        allowed: String,
        /// Status of the BMC, or the suites that it offers.
        reason: String,
    },
    /// The BMC refused the session for a reason other than suite, user or password.
    #[error("BMC {address} refused {step}: {status}")]
    SessionRefused {
        /// Address of the BMC.
        address: Address,
        /// Request that was refused.
        step: &'static str,
        /// Status of the BMC.
        status: SessionStatus,
    },
    /// The BMC received a command and refused it.
    #[error("BMC {address} refused {command}: {code}")]
    CommandRefused {
        /// Address of the BMC.
        address: Address,
        /// Name of the command in the standard.
        command: &'static str,
        /// Completion code of the BMC.
        code: CompletionCode,
    },
    /// The BMC sent datagrams, but no valid answer: short, forged, or another protocol.
    #[error("BMC {address} sent an invalid response to {step}")]
    Hostile {
        /// Address of the BMC.
        address: Address,
        /// Request that got the datagram.
        step: &'static str,
        /// Error in the last datagram.
        #[source]
        source: Malformed,
    },
    /// The credentials cannot be sent in this protocol.
    #[error("cannot log in to BMC {address}: {reason}")]
    Credentials {
        /// Address of the BMC.
        address: Address,
        /// Limit that is exceeded.
        reason: &'static str,
    },
    /// The requested cipher suite is not supported by this driver.
    #[error("cannot use cipher suite {asked:?}: use 17 or 3")]
    UnknownSuite {
        /// Cipher suite that was requested.
        asked: String,
    },
    /// The protocol of the driver lacks this action.
    #[error("{driver} does not support {action}")]
    Unsupported {
        /// Name of the driver.
        driver: &'static str,
        /// Power action that was requested.
        action: PowerAction,
    },
    /// The command was sent, and no answer to it came: it may have been carried out. Reported for
    /// commands that must not be sent twice.
    #[error("BMC {address} did not confirm {action}: the action may have been done")]
    Unanswered {
        /// Address of the BMC.
        address: Address,
        /// Command without a confirmation.
        action: PowerAction,
        /// Failure of the wait for the answer.
        #[source]
        source: Box<Error>,
    },
    /// The caller does not permit the command, which was not sent.
    #[error("cannot {action}: {reason}")]
    Withheld {
        /// Command that was refused.
        action: PowerAction,
        /// Reason of the caller.
        reason: String,
        /// The caller may permit it later.
        may_pass: bool,
    },
    /// The BMC accepted the request, but the power state did not change.
    #[error("the power was not {want} within {:.1} s, last state {last}", after.as_secs_f32())]
    NotConfirmed {
        /// Power state that was requested.
        want: Power,
        /// Power state of the last reading.
        last: Power,
        /// Time limit for the state.
        after: Duration,
    },
}

impl Error {
    /// The BMC refused the user: the same login would be refused again, and may lock the account.
    pub fn refuses_login(&self) -> bool {
        matches!(self, Self::WrongPassword { .. } | Self::Privilege { .. })
    }

    /// True if the same call may succeed later without a change: silence, a busy BMC, a damaged
    /// reply. Wrong passwords and refused suites are permanent, and some BMCs lock the account when
    /// they are repeated. A command that may have been carried out must not be repeated.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Resolve { .. }
            | Self::Socket { .. }
            | Self::NoAnswer { .. }
            | Self::Timeout { .. }
            | Self::Hostile { .. }
            | Self::NotConfirmed { .. } => true,
            Self::SessionRefused { status, .. } => status.is_transient(),
            Self::CommandRefused { code, .. } => code.is_transient(),
            Self::Withheld { may_pass, .. } => *may_pass,
            Self::WrongPassword { .. }
            | Self::Privilege { .. }
            | Self::SuiteRefused { .. }
            | Self::Credentials { .. }
            | Self::UnknownSuite { .. }
            | Self::Unanswered { .. }
            | Self::Unsupported { .. } => false,
        }
    }
}
