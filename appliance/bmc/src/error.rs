//! What can go wrong on the way to a BMC, and which of it may pass by itself.

use std::io;
use std::time::Duration;

use crate::ipmi::{CompletionCode, Malformed, SessionStatus};
use crate::{Address, Power, PowerAction};

/// A BMC that could not be asked, or would not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name has no address.
    #[error("cannot find the IP address of BMC {address}")]
    Resolve {
        /// The BMC.
        address: Address,
        /// What the resolver said; none when it said that there is no address.
        #[source]
        source: Option<io::Error>,
    },
    /// The box itself cannot send to that address.
    #[error("cannot send to BMC {address}")]
    Socket {
        /// The BMC.
        address: Address,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// Not one byte came back: switched off, unplugged, filtered, or another address.
    #[error(
        "BMC {address} did not answer {step} within {:.1} s: \
         is it powered, connected and is IPMI over LAN enabled?", after.as_secs_f32()
    )]
    NoAnswer {
        /// The BMC.
        address: Address,
        /// What it was asked.
        step: &'static str,
        /// How long it was given.
        after: Duration,
    },
    /// It answered before, and then no more.
    #[error("BMC {address} stopped answering at {step}, waited {:.1} s", after.as_secs_f32())]
    Timeout {
        /// The BMC.
        address: Address,
        /// What it was asked.
        step: &'static str,
        /// How long it was given.
        after: Duration,
    },
    /// The user does not exist, may not do this, or has another password.
    #[error("BMC {address} does not accept the user name or password given for user {username:?}")]
    WrongPassword {
        /// The BMC.
        address: Address,
        /// The user tried.
        username: String,
    },
    /// The user exists, but with fewer rights than switching power needs.
    #[error("BMC {address} does not let user {username:?} act as an operator: {status}")]
    Privilege {
        /// The BMC.
        address: Address,
        /// The user tried.
        username: String,
        /// What the BMC said.
        status: String,
    },
    /// None of the allowed suites is accepted; a weaker one is never tried.
    #[error("BMC {address} accepts none of the cipher suites allowed here ({allowed}): {said}")]
    SuiteRefused {
        /// The BMC.
        address: Address,
        /// The suites that may be used, by number.
        allowed: String,
        /// What the BMC said, or offered.
        said: String,
    },
    /// The BMC would not open a session, for a reason other than suite, user or password.
    #[error("BMC {address} refused {step}: {status}")]
    SessionRefused {
        /// The BMC.
        address: Address,
        /// What it was asked.
        step: &'static str,
        /// Why, in its own numbers.
        status: SessionStatus,
    },
    /// The BMC understood a command and would not do it.
    #[error("BMC {address} refused {command}: {code}")]
    CommandRefused {
        /// The BMC.
        address: Address,
        /// The command's name in the standard.
        command: &'static str,
        /// Why, in its own numbers.
        code: CompletionCode,
    },
    /// Bytes came back, and none of them were an answer: short, forged, or another protocol.
    #[error("BMC {address} answered {step} with bytes that are no answer to it")]
    Hostile {
        /// The BMC.
        address: Address,
        /// What it was asked.
        step: &'static str,
        /// What was wrong with the last datagram.
        #[source]
        source: Malformed,
    },
    /// The credentials cannot be sent in this protocol.
    #[error("cannot log in to BMC {address}: {reason}")]
    Credentials {
        /// The BMC.
        address: Address,
        /// Which limit they break.
        reason: &'static str,
    },
    /// A suite asked for by number which this driver will not use.
    #[error("cannot use cipher suite {asked:?}: 17 and 3 are the ones allowed")]
    UnknownSuite {
        /// As it was asked for.
        asked: String,
    },
    /// The driver's protocol has no such action.
    #[error("cannot {action} through {driver}: it has no such action")]
    Unsupported {
        /// The driver's name.
        driver: &'static str,
        /// What was asked of it.
        action: PowerAction,
    },
    /// The command was sent, and no answer to it came: it may have been carried out. Reported for
    /// commands that must not be sent twice.
    #[error("BMC {address} did not answer {action}: it may have been carried out")]
    Unanswered {
        /// The BMC.
        address: Address,
        /// The command.
        action: PowerAction,
        /// Failure of the wait for the answer.
        #[source]
        source: Box<Error>,
    },
    /// The caller does not permit the command, which was not sent.
    #[error("cannot {action}: {reason}")]
    Withheld {
        /// The command.
        action: PowerAction,
        /// The caller's reason.
        reason: String,
        /// The caller may permit it later.
        may_pass: bool,
    },
    /// The BMC took the request, and the power did not follow.
    #[error("power was not confirmed {want} within {:.1} s, last seen {last}", after.as_secs_f32())]
    NotConfirmed {
        /// The state asked for.
        want: Power,
        /// The state last read.
        last: Power,
        /// How long it was given.
        after: Duration,
    },
}

impl Error {
    /// The BMC refused the user: the same login would be refused again, and may lock the account.
    pub fn refuses_login(&self) -> bool {
        matches!(self, Self::WrongPassword { .. } | Self::Privilege { .. })
    }

    /// Whether the same call may succeed later with nothing changed: silence, a busy BMC, a reply
    /// garbled on the way. Wrong passwords and refused suites do not pass by themselves, and some
    /// BMCs lock the account when they are repeated. A command that may have been carried out is
    /// not to be sent again.
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
