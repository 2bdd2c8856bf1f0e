//! NIC in the status view: role, DHCP mode and state.

use api::network::Mode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stdx::MacAddr;

use super::Text;

/// Role of a NIC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// The NIC is not used.
    #[default]
    Unused,
    /// The NIC serves people: web page and API.
    Management,
    /// The NIC serves machines: DHCP and network boot.
    Provisioning,
    /// The NIC serves people and machines.
    Both,
}

impl Role {
    /// Returns the role as a word for people.
    pub fn word(self) -> &'static str {
        match self {
            Role::Unused => "unused",
            Role::Management => "management",
            Role::Provisioning => "provisioning",
            Role::Both => "both",
        }
    }
}

/// A NIC of the box.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Nic {
    /// Name of the interface: `eth1`.
    pub name: Text,
    /// MAC address of the NIC.
    pub mac: Option<MacAddr>,
    /// Link speed in Mbit/s; `None` without a link.
    pub link_mbps: Option<u32>,
    /// Time of the last change of the link state.
    pub link_since: Option<Timestamp>,
    /// Role of the NIC.
    pub role: Role,
    /// IP address with prefix length: `10.20.30.40/24`; empty if the NIC has none.
    pub address: Text,
    /// DHCP mode of the network.
    pub mode: Mode,
    /// Time since which DHCP serves this network; `None` if it does not serve.
    pub armed_since: Option<Timestamp>,
    /// Reason why DHCP does not serve although `mode` requires it; empty if it serves.
    pub held: Text,
    /// Other DHCP servers that were detected on the network.
    pub foreign: Vec<ForeignServer>,
    /// Time of the last probe for other servers.
    pub probed: Option<Timestamp>,
    /// Number of leased addresses in the pools.
    pub leased: u32,
    /// Number of free addresses in the pools.
    pub free: u32,
}

/// Another DHCP server on the network of a NIC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ForeignServer {
    /// IP address of the server.
    pub address: Text,
    /// MAC address of the server, or of the relay agent that forwards its packets.
    pub mac: Text,
    /// Vendor of the MAC address (OUI); may be empty.
    pub vendor: Text,
    /// First address that the server offered; may be empty.
    pub offered: Text,
    /// Time of the server's last packet.
    pub heard: Option<Timestamp>,
}

impl Nic {
    /// Returns the address without its prefix length; `None` if the NIC has none.
    pub fn address(&self) -> Option<&str> {
        let bare = self.address.split('/').next()?;
        (!bare.is_empty()).then_some(bare)
    }

    /// Returns true if machines boot from this NIC.
    pub fn provisions(&self) -> bool {
        matches!(self.role, Role::Provisioning | Role::Both)
    }

    /// Returns true if DHCP serves this network now.
    pub fn armed(&self) -> bool {
        self.mode != Mode::Off && self.armed_since.is_some()
    }

    /// Returns true if DHCP stopped because of another DHCP server (NW-6).
    pub fn stopped(&self) -> bool {
        matches!(self.mode, Mode::Reserved | Mode::Pool) && !self.foreign.is_empty()
    }

    /// Formats the link speed: `1 Gb/s`, `2.5 Gb/s`, `100 Mb/s`, `no cable`; `link up` for a NIC
    /// without a reported speed, such as one of a virtual machine.
    pub fn link(&self) -> String {
        match self.link_mbps {
            None => "no cable".to_owned(),
            Some(0) => "link up".to_owned(),
            Some(mbps) if mbps < 1000 => format!("{mbps} Mb/s"),
            Some(mbps) if mbps % 1000 == 0 => format!("{} Gb/s", mbps / 1000),
            Some(mbps) => format!("{:.1} Gb/s", f64::from(mbps) / 1000.0),
        }
    }
}
