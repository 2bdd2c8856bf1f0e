//! Errors of a BMC or of the network path, and their classification as transient.

use std::io;
use std::time::Duration;

use stdx::Hint;

use crate::{Address, BootDevice, Feature, Power, PowerAction};

/// Error of a BMC or of the network path to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The BMC rejected the same login before, so the box did not send the login again.
    #[error(
        "{answer}; the box does not repeat this login before {next}, because the BMC may lock the \
         account: correct the Secret"
    )]
    LoginHeld {
        /// Address of the BMC.
        address: Address,
        /// Answer of the BMC to the login, as a sentence.
        answer: String,
        /// Time of the next attempt, in UTC.
        next: String,
    },
    /// The BMC did not respond to several requests, so the box did not send this request.
    #[error("{answer}; after {failures} failed requests the box contacts the BMC less often")]
    Paused {
        /// Address of the BMC.
        address: Address,
        /// Last error, as a sentence.
        answer: String,
        /// Number of failed requests in a row.
        failures: u32,
    },
    /// The protocol of the driver does not have the power action.
    #[error("{driver} does not support {action}")]
    Unsupported {
        /// Name of the driver.
        driver: &'static str,
        /// Power action that was requested.
        action: PowerAction,
    },
    /// The driver cannot set the boot device as requested.
    #[error("{driver} cannot boot from {device}: {reason}")]
    BootDevice {
        /// Name of the driver.
        driver: &'static str,
        /// Boot device that was requested.
        device: BootDevice,
        /// Reason, as a sentence.
        reason: &'static str,
    },
    /// The protocol of the driver, or this BMC, does not have the feature.
    #[error("the {driver} driver has no access to {feature} of this machine")]
    FeatureMissing {
        /// Name of the driver.
        driver: &'static str,
        /// Feature that was requested.
        feature: Feature,
    },
    /// Wake-on-LAN has no hardware address to send to.
    #[error("{address} has no hardware address for Wake-on-LAN")]
    NoMac {
        /// Name of the machine.
        address: Address,
    },
    /// A magic packet was sent on no interface.
    #[error("cannot send a magic packet on {interface}")]
    MagicPacket {
        /// Network interface of the box.
        interface: String,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The SecureOn password has another form than the one of NICs. The text is a secret.
    #[error("the SecureOn password is not four or six bytes, such as aa:bb:cc:dd:ee:ff")]
    InvalidSecureOn,
    /// A BMC with IPMI, or the connection to the BMC, failed.
    #[error(transparent)]
    Ipmi(Box<ipmi::Error>),
    /// Intel AMT, or the connection to the management engine, failed.
    #[error("Intel AMT of {address}")]
    Amt {
        /// Address of the management engine.
        address: Address,
        /// Error of the driver.
        #[source]
        source: Box<amt::Error>,
    },
    /// A Redfish service, or the connection to the service, failed.
    #[error("Redfish of {address}")]
    Redfish {
        /// Address of the BMC.
        address: Address,
        /// Error of the driver.
        #[source]
        source: Box<redfish::Error>,
    },
    /// A webhook, Home Assistant or a smart plug failed.
    #[error("power control of {address}")]
    Webhook {
        /// Address of the server.
        address: Address,
        /// Error of the driver.
        #[source]
        source: Box<webhook::Error>,
    },
    /// A switch with Power over Ethernet, or the connection to the switch, failed.
    #[error("Power over Ethernet of {address}")]
    Poe {
        /// Address of the switch.
        address: Address,
        /// Error of the driver.
        #[source]
        source: Box<poe::Error>,
    },
    /// The driver sent a command that must not be repeated, and got no response: the BMC may have
    /// executed the command.
    #[error("BMC {address} did not confirm {action}: the action may have been done")]
    Unanswered {
        /// Address of the BMC.
        address: Address,
        /// Power action of the command.
        action: PowerAction,
        /// Error of the missing response.
        #[source]
        source: Box<Error>,
    },
    /// The caller did not permit the command, so the driver did not send it.
    #[error("cannot {action}: {reason}")]
    Withheld {
        /// Power action that was not permitted.
        action: PowerAction,
        /// Reason why the caller did not permit the action.
        reason: String,
        /// True if the caller may permit the action later.
        may_pass: bool,
    },
    /// The BMC accepted the request, but did not report the requested power state in time.
    #[error(
        "the power was not {want} within {:.1} s; last state: {last}{}", after.as_secs_f32(),
        reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default()
    )]
    NotConfirmed {
        /// Power state that was requested.
        want: Power,
        /// Power state at the last reading.
        last: Power,
        /// Reason of this state, if the driver has one.
        reason: Option<String>,
        /// Time since the start of the change.
        after: Duration,
        /// Last error of the BMC; `None` if the BMC has responded since.
        #[source]
        source: Option<Box<Error>>,
    },
}

impl Error {
    /// Returns true if the BMC refused the user. Repeated logins may lock the account.
    pub fn refuses_login(&self) -> bool {
        match self {
            Self::Ipmi(error) => error.refuses_login(),
            Self::Amt { source, .. } => source.refuses_login(),
            Self::Redfish { source, .. } => source.refuses_login(),
            Self::Webhook { source, .. } => source.refuses_login(),
            Self::Poe { source, .. } => source.refuses_login(),
            Self::LoginHeld { .. } => true,
            _ => false,
        }
    }

    /// Returns the error of a power action that the BMC may have executed. On and off may be
    /// requested again after the state is read.
    pub(crate) fn of_unconfirmed(self, action: PowerAction, address: &Address) -> Self {
        match action {
            PowerAction::On | PowerAction::Off => self,
            _ => Self::Unanswered { address: address.clone(), action, source: Box::new(self) },
        }
    }

    /// Returns the error with its causes and its hint, in one line.
    pub fn sentence(&self) -> String {
        let hint = self.hint().map(|hint| format!("; {hint}"));
        format!("{}{}", stdx::chain(self), hint.unwrap_or_default())
    }

    /// Returns true if the same call may succeed later: no response, a busy BMC, or a damaged
    /// response. Wrong passwords are permanent, and some BMCs lock the account
    /// after repeated logins. A command that the BMC may have executed must not be repeated.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Paused { .. } | Self::MagicPacket { .. } | Self::NotConfirmed { .. } => true,
            Self::Ipmi(error) => error.is_transient(),
            Self::Withheld { may_pass, .. } => *may_pass,
            Self::Amt { source, .. } => source.is_transient(),
            Self::Redfish { source, .. } => source.is_transient(),
            Self::Webhook { source, .. } => source.is_transient(),
            Self::Poe { source, .. } => source.is_transient(),
            Self::LoginHeld { .. }
            | Self::NoMac { .. }
            | Self::InvalidSecureOn
            | Self::Unanswered { .. }
            | Self::BootDevice { .. }
            | Self::FeatureMissing { .. }
            | Self::Unsupported { .. } => false,
        }
    }
}

impl From<ipmi::Error> for Error {
    fn from(error: ipmi::Error) -> Self {
        Self::Ipmi(Box::new(error))
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Ipmi(error) => error.hint(),
            Self::Amt { source, .. } => source.hint(),
            Self::Redfish { source, .. } => source.hint(),
            Self::Webhook { source, .. } => source.hint(),
            Self::Poe { source, .. } => source.hint(),
            Self::Unanswered { source, .. } => source.hint(),
            Self::NotConfirmed { source, .. } => source.as_deref()?.hint(),
            Self::NoMac { .. } => Some(
                "add connection.providerOptions.wakeOnLAN.macs to the Machine, or name the Machine \
                 in bmcRef of a Hardware",
            ),
            Self::InvalidSecureOn => Some("correct the key secureOn of the Secret"),
            _ => None,
        }
    }
}
