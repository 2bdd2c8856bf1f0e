//! Trait of all BMC drivers, and the connection data of a BMC.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;

use stdx::Secret;
use webhook::plug::{PlugAddress, Preset};
use webhook::{RpcOptions, Tls};

use crate::Error;

/// Power state of a machine as its BMC reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Power {
    /// The machine has power.
    On,
    /// The machine has no power.
    Off,
    /// The BMC answered, but does not know the power state.
    Unknown,
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Unknown => "unknown",
        })
    }
}

/// Power change to request. An `Ok` result does not confirm the new state: see [`crate::ensure()`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PowerAction {
    /// Switches the power on.
    On,
    /// Switches the power off at once, without a shutdown.
    Off,
    /// Requests a shutdown by the operating system (ACPI power button).
    Soft,
    /// Switches the power off and on again.
    Cycle,
    /// Resets the machine without losing power and without a shutdown.
    Reset,
}

impl fmt::Display for PowerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "power on",
            Self::Off => "power off",
            Self::Soft => "soft power off",
            Self::Cycle => "power cycle",
            Self::Reset => "reset",
        })
    }
}

/// Boot device that the firmware uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BootDevice {
    /// Network boot by PXE.
    Pxe,
    /// Default disk of the machine.
    Disk,
    /// Setup program of the firmware.
    Bios,
    /// CD or DVD, real or virtual.
    Cdrom,
    /// Default disk, with the operating system in safe mode.
    Safe,
}

impl fmt::Display for BootDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pxe => "pxe",
            Self::Disk => "disk",
            Self::Bios => "bios",
            Self::Cdrom => "cdrom",
            Self::Safe => "safe",
        })
    }
}

/// Boot device that overrides the boot order of the firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BootOverride {
    /// Device to boot from.
    pub device: BootDevice,
    /// True for every later boot, false for the next boot only.
    pub persistent: bool,
    /// True to boot in UEFI mode, false in legacy BIOS mode.
    pub efi: bool,
}

/// Future that a driver's method returns; boxed, so that the trait is object-safe.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Driver of one BMC. Every method has its own time limit. A caller may drop the returned future at
/// any time; the next call then opens a new session.
pub trait Driver: Send + Sync {
    /// Returns the name of the protocol for display: `ipmi`, `amt`, `webhook`.
    fn name(&self) -> &'static str;

    /// Returns what the driver can do. A request that it cannot do is an error.
    fn capabilities(&self) -> Capabilities;

    /// Reads the power state from the BMC.
    fn power(&self) -> Pending<'_, Power>;

    /// Requests a change of power. `Ok` means that the BMC accepted the request, not the new state.
    fn set_power(&self, action: PowerAction) -> Pending<'_, ()>;

    /// Sets the boot device of the next boot or of every boot.
    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()>;

    /// Reads the active override; `None` if the machine uses its own boot order.
    fn boot_device(&self) -> Pending<'_, Option<BootOverride>>;
}

/// Network address of a BMC.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// Host name or IP address, IPv6 without brackets; for Home Assistant the URL of its API.
    pub host: String,
    /// UDP port of IPMI, default [`Address::IPMI_PORT`], or TCP port; 0 for a URL.
    pub port: u16,
}

impl Address {
    /// UDP port that IANA assigned to RMCP (ASF 2.0 §3.2.1).
    pub const IPMI_PORT: u16 = 623;

    /// Creates the address of `host` with the default IPMI port 623.
    pub fn ipmi(host: impl Into<String>) -> Self {
        Self { host: host.into(), port: Self::IPMI_PORT }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.port == 0 {
            f.write_str(&self.host)
        } else if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// User name and password of a BMC account; both empty for a server without a login.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// User name; at most 16 bytes for IPMI.
    pub username: String,
    /// Password; at most 20 bytes for IPMI.
    pub password: Secret,
}

/// Cipher suite of IPMI (IPMI 2.0 table 22-20). Insecure suites are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CipherSuite {
    /// Suite 3: RAKP-HMAC-SHA1, HMAC-SHA1-96, AES-CBC-128.
    Three,
    /// Suite 17: RAKP-HMAC-SHA256, HMAC-SHA256-128, AES-CBC-128.
    Seventeen,
}

impl CipherSuite {
    /// Suites that a driver tries by default, best first.
    pub const PREFERRED: [Self; 2] = [Self::Seventeen, Self::Three];

    /// Returns the number of the suite in IPMI 2.0 table 22-20.
    pub fn id(self) -> u8 {
        match self {
            Self::Three => 3,
            Self::Seventeen => 17,
        }
    }

    /// Returns the suite with the number `id`; `None` for an insecure or unknown suite.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::PREFERRED.into_iter().find(|suite| suite.id() == id)
    }
}

impl fmt::Display for CipherSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id())
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

/// Boot devices that a driver can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootControl {
    /// None: the machine boots by the order of its firmware.
    None,
    /// The device of the next boot.
    Once,
    /// The device of the next boot, or of every boot.
    Always,
}

/// Power and boot control of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Power actions that the driver can request.
    pub power: &'static [PowerAction],
    /// Boot devices that the driver can set.
    pub boot: BootControl,
}

impl Capabilities {
    /// Power actions of a management controller.
    pub const ALL_POWER: &'static [PowerAction] = &[
        PowerAction::On,
        PowerAction::Off,
        PowerAction::Soft,
        PowerAction::Cycle,
        PowerAction::Reset,
    ];

    /// Returns the names of the capabilities, as in the status of a Machine.
    pub fn names(self) -> Vec<&'static str> {
        let power = self.power.iter().map(|action| match action {
            PowerAction::On => "on",
            PowerAction::Off => "off",
            PowerAction::Soft => "soft",
            PowerAction::Cycle => "cycle",
            PowerAction::Reset => "reset",
        });
        let boot: &[&str] = match self.boot {
            BootControl::None => &[],
            BootControl::Once => &["bootOnce"],
            BootControl::Always => &["bootOnce", "bootAlways"],
        };
        power.chain(boot.iter().copied()).collect()
    }
}

/// Protocol of a BMC, with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protocol {
    /// IPMI 2.0 over LAN (RMCP+).
    Ipmi {
        /// Required suite; `None` means the best of [`CipherSuite::PREFERRED`] that the BMC
        /// supports.
        cipher_suite: Option<CipherSuite>,
    },
    /// Intel AMT, with TLS or, where the owner permits it, without.
    Amt(amt::Security),
    /// Webhook of the owner.
    Rpc(Box<RpcOptions>, Tls),
    /// Switch of Home Assistant.
    HomeAssistant {
        /// Entity of the switch.
        entity: String,
        /// Wait after a power operation.
        delay: Duration,
        /// Verification of the server's certificate.
        tls: Tls,
    },
    /// Smart plug, relay or switch port.
    Plug(Box<PlugProtocol>),
}

/// Kind and outlet of a smart plug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlugProtocol {
    /// Requests of the kind of plug.
    pub preset: Preset,
    /// Scheme, host and port, and the outlet.
    pub address: PlugAddress,
    /// Power in watts below which the machine is off.
    pub off_below_watts: u16,
    /// Verification of the plug's certificate.
    pub tls: Tls,
}

/// Connection data of one BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Network address of the BMC.
    pub address: Address,
    /// User name and password of an account.
    pub credentials: Credentials,
    /// Protocol that the BMC has.
    pub protocol: Protocol,
}

impl Endpoint {
    /// Returns the required cipher suite of IPMI; `None` if the driver selects the suite.
    pub fn cipher_suite(&self) -> Option<CipherSuite> {
        match self.protocol {
            Protocol::Ipmi { cipher_suite } => cipher_suite,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_so_that_they_can_be_read() {
        assert_eq!(Address::ipmi("10.0.0.7").to_string(), "10.0.0.7:623");
        assert_eq!(Address { host: "fd77::7".into(), port: 6230 }.to_string(), "[fd77::7]:6230");
    }

    #[test]
    fn only_good_suites_have_a_name() {
        assert_eq!("17".parse::<CipherSuite>().unwrap(), CipherSuite::Seventeen);
        assert_eq!("3".parse::<CipherSuite>().unwrap(), CipherSuite::Three);
        for weak in ["0", "1", "2", "8", "12", "256", "", "x"] {
            assert!(weak.parse::<CipherSuite>().is_err(), "{weak}");
        }
    }

    #[test]
    fn a_printed_endpoint_keeps_its_password() {
        let credentials = Credentials { username: "admin".into(), password: "hunter2".into() };
        let address = Address::ipmi("bmc");
        let protocol = Protocol::Ipmi { cipher_suite: None };
        let endpoint = Endpoint { address, credentials, protocol };
        assert!(!format!("{endpoint:?}").contains("hunter2"));
    }
}
