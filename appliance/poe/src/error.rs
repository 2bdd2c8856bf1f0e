//! Errors of requests to a switch.

use std::fmt;
use std::io;
use std::time::Duration;

use stdx::Hint;

use crate::{PortId, PortState};

/// Error of a request to a switch. No text contains a password or a community string.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option or a key of the Secret is not valid.
    #[error("{field} is not valid: {reason}")]
    Invalid {
        /// Field of the options, or key of the Secret.
        field: &'static str,
        /// Difference from a valid value.
        reason: &'static str,
    },
    /// The host name of the switch cannot be resolved to an IP address.
    #[error("cannot find the IP address of the switch")]
    Resolve(#[source] io::Error),
    /// The switch did not respond to any of the transmissions.
    #[error("the switch did not respond to SNMP within {:.1} s", after.as_secs_f32())]
    NoAnswer {
        /// Time from the first transmission.
        after: Duration,
        /// Request without a response.
        silence: Silence,
    },
    /// The switch refused the login.
    #[error("the switch refused the login: {0}")]
    Login(LoginRefusal),
    /// The switch refused the request.
    #[error("the switch refused to {what}: {refusal}")]
    Refused {
        /// Attempt, such as `switch port 1.3 off`.
        what: String,
        /// Refusal of the switch.
        refusal: Refusal,
    },
    /// The switch reports no port of POWER-ETHERNET-MIB to this login.
    #[error("the switch reports no PoE port (POWER-ETHERNET-MIB) to this login")]
    NoPorts,
    /// The switch has other ports than the one of the machine.
    #[error("the switch has no PoE port {port}; its PoE ports are {known}")]
    NoPort {
        /// Port of the machine.
        port: PortId,
        /// Ports of the switch, as text.
        known: String,
    },
    /// The port has another name than the owner wrote.
    #[error(
        "the name of PoE port {port} is not {expected:?}, so the port was not switched; \
             names that the switch reports: {found}"
    )]
    OtherName {
        /// Port of the machine.
        port: PortId,
        /// Name that the owner wrote.
        expected: String,
        /// Names that the switch reports.
        found: String,
    },
    /// The state of the port is not known, so the port was not switched off.
    #[error("PoE port {port} was not switched off, because its state is not clear: {state}")]
    Unclear {
        /// Port of the machine.
        port: PortId,
        /// State that the switch reported.
        state: PortState,
    },
    /// The switch accepted a request to switch the port off, but still reports another state.
    #[error("PoE port {port} was not off {} s after the request: {state}", after.as_secs())]
    StillOn {
        /// Port of the machine.
        port: PortId,
        /// State that the switch reported last.
        state: PortState,
        /// Time since the request.
        after: Duration,
    },
    /// A port was switched off, or the request may have reached the switch, and the port was not
    /// switched on again.
    #[error("the cycle of PoE port {port} ended before the port was switched on again")]
    BrokenCycle {
        /// Port of the machine.
        port: PortId,
        /// Error of the request.
        #[source]
        source: Box<Error>,
    },
    /// The library could not send the request or use the response.
    #[error("SNMP request to the switch failed")]
    Snmp(#[source] Box<async_snmp::Error>),
}

/// Request to which a switch did not respond. The possible causes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// A request of version 2c. A switch ignores a wrong community string.
    Community,
    /// The discovery of the engine, which needs no login.
    Discovery,
    /// An encrypted request, after the discovery. Some switches, such as those with net-snmp,
    /// ignore a request that they cannot decrypt.
    Encrypted,
}

/// Reason for which a switch refused a login: the reports of USM (RFC 3414 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginRefusal {
    /// The switch does not know the user: `usmStatsUnknownUserNames`.
    User,
    /// `usmStatsWrongDigests`: another password, or another hash.
    Password,
    /// `usmStatsDecryptionErrors`: another privacy password, or another cipher.
    PrivacyPassword,
    /// `usmStatsUnsupportedSecLevels`: the user has no keys for encryption.
    Level,
}

impl fmt::Display for LoginRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "unknown user (usmStatsUnknownUserNames)",
            Self::Password => "wrong password or hash of the authentication (usmStatsWrongDigests)",
            Self::PrivacyPassword => "wrong privacy password or cipher (usmStatsDecryptionErrors)",
            Self::Level => {
                "the user has no authentication with encryption (usmStatsUnsupportedSecLevels)"
            }
        })
    }
}

/// Error status of a response (RFC 3416 section 3), as far as the words for the owner differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The login may not do this: `noAccess`, `notWritable`, `authorizationError` and `readOnly`.
    Access(async_snmp::ErrorStatus),
    /// The switch could not execute the request now: `genErr`, `resourceUnavailable`,
    /// `commitFailed` and `undoFailed`.
    Failed(async_snmp::ErrorStatus),
    /// Another status of RFC 3416, such as `wrongValue`.
    Other(async_snmp::ErrorStatus),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Access(status) => write!(f, "{status}, the login has no access"),
            Self::Failed(status) => write!(f, "{status}, the switch could not do this"),
            Self::Other(status) => write!(f, "{status}"),
        }
    }
}

impl Error {
    /// Returns true if the switch refused the login.
    pub fn refuses_login(&self) -> bool {
        match self {
            Self::Login(_) => true,
            Self::BrokenCycle { source, .. } => source.refuses_login(),
            _ => false,
        }
    }

    /// Returns true if the switch sent no usable response.
    pub fn is_silence(&self) -> bool {
        match self {
            Self::Resolve(_) | Self::NoAnswer { .. } | Self::Snmp(_) => true,
            Self::BrokenCycle { source, .. } => source.is_silence(),
            _ => false,
        }
    }

    /// Returns true if the port may have been switched off, and not on again.
    pub fn breaks_cycle(&self) -> bool {
        matches!(self, Self::BrokenCycle { .. })
    }

    /// Returns true if the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused { refusal, .. } => matches!(refusal, Refusal::Failed(_)),
            Self::Unclear { .. } | Self::StillOn { .. } => true,
            Self::BrokenCycle { source, .. } => source.is_transient(),
            _ => self.is_silence(),
        }
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::Invalid { .. } => {
                "correct connection.providerOptions.poe of the Machine, or its Secret"
            }
            Self::NoAnswer { silence: Silence::Community, .. } => {
                "check that SNMP version 2c is enabled on the switch, that the switch permits the \
                 address of the box, and that the community string is right: a switch does not \
                 respond to a wrong one"
            }
            Self::NoAnswer { silence: Silence::Encrypted, .. } => {
                "the switch speaks SNMP version 3, but did not respond to the encrypted request: \
                 check that privacyPassword in the Secret is right and that the user of the switch \
                 has AES-128, because some switches do not respond to a wrong one"
            }
            Self::Resolve(_) | Self::NoAnswer { .. } | Self::Snmp(_) => {
                "check that the switch runs, that SNMP version 3 is enabled on it, and that it \
                 permits the address of the box"
            }
            Self::Login(LoginRefusal::Level) => {
                "give the user of the switch the level authPriv, with AES-128"
            }
            Self::Login(_) => "correct the Secret of the Machine, or the user on the switch",
            Self::Refused { refusal: Refusal::Access(_), .. } => {
                "grant the user or community of the switch write access to pethPsePortAdminEnable \
                 (1.3.6.1.2.1.105.1.1.1.3)"
            }
            Self::NoPorts => {
                "check that the switch supports POWER-ETHERNET-MIB, and grant the user or \
                 community read access to 1.3.6.1.2.1.105"
            }
            Self::NoPort { .. } => "correct connection.providerOptions.poe.outlet of the Machine",
            Self::OtherName { .. } => {
                "correct outlet, portName or interface in connection.providerOptions.poe, or the \
                 description of the port on the switch"
            }
            Self::BrokenCycle { source, .. } => return source.hint(),
            Self::Refused { .. } | Self::Unclear { .. } | Self::StillOn { .. } => return None,
        })
    }
}
