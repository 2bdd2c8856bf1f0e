//! Connection data of a BMC: address, login and protocol.

use std::fmt;
use std::time::Duration;

use ipmi::CipherSuite;
use poe::{Options as PoeOptions, PortId};
use stdx::Secret;
use webhook::plug::{PlugAddress, Preset};
use webhook::{RpcOptions, Tls};

use crate::WakeOnLan;

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
    pub const IPMI_PORT: u16 = ipmi::Address::PORT;

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

impl From<&Address> for ipmi::Address {
    fn from(Address { host, port }: &Address) -> Self {
        Self { host: host.clone(), port: *port }
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
    Amt(AmtOptions),
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
    /// Redfish service of the BMC (DMTF DSP0266).
    Redfish(RedfishOptions),
    /// Smart plug, relay or switch port.
    Plug(Box<PlugProtocol>),
    /// Port of a switch with Power over Ethernet, by SNMP.
    Poe(Box<PoeOptions>),
    /// Magic packets; the address of the endpoint is only a name.
    WakeOnLan(Box<WakeOnLan>),
}

/// Options of Intel AMT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmtOptions {
    /// Protection of the connection: TLS or, where the owner permits it, none.
    pub security: amt::Security,
    /// Root certificate that the machine must trust for a boot by UEFI HTTPS.
    pub boot_root: Option<amt::RootCertificate>,
}

impl From<amt::Security> for AmtOptions {
    fn from(security: amt::Security) -> Self {
        Self { security, boot_root: None }
    }
}

/// Options of a Redfish service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedfishOptions {
    /// Identifier or name of the system; empty for the only or first one.
    pub system: String,
    /// True to log in by HTTP Basic instead of a session.
    pub is_basic: bool,
    /// Protection of the connection.
    pub security: redfish::Security,
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

    /// Returns the port of a switch; `None` for a BMC of one machine. Ports of one switch have one
    /// address.
    pub fn switch_port(&self) -> Option<PortId> {
        match &self.protocol {
            Protocol::Poe(options) => Some(options.port),
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
    fn a_printed_endpoint_keeps_its_password() {
        let credentials = Credentials { username: "admin".into(), password: "hunter2".into() };
        let address = Address::ipmi("bmc");
        let protocol = Protocol::Ipmi { cipher_suite: None };
        let endpoint = Endpoint { address, credentials, protocol };
        assert!(!format!("{endpoint:?}").contains("hunter2"));
    }
}
