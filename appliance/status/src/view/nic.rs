//! A NIC: its role, its DHCP mode and its state.

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
    /// People reach the box through it.
    Management,
    /// Machines boot through it.
    Provisioning,
    /// People and machines share it.
    Both,
}

impl Role {
    /// Word for the role.
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
    /// Megabits a second; `None` without a cable.
    pub link_mbps: Option<u32>,
    /// Time at which the cable was last plugged or unplugged.
    pub link_since: Option<Timestamp>,
    /// Role of the NIC.
    pub role: Role,
    /// Its address with the length of the prefix: `10.20.30.40/24`; empty when it has none.
    pub address: Text,
    /// DHCP mode of the network.
    pub mode: Mode,
    /// Since when they are; `None`: they are not.
    pub armed_since: Option<Timestamp>,
    /// Reason why DHCP does not answer although it should; may be empty.
    pub held: Text,
    /// Other DHCP servers on the network.
    pub foreign: Vec<ForeignServer>,
    /// Time of the last probe for other servers.
    pub probed: Option<Timestamp>,
    /// Addresses of the pools that are given away.
    pub leased: u32,
    /// Addresses of the pools that are free.
    pub free: u32,
}

/// Another DHCP server on the same wire.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ForeignServer {
    /// IP address of the server.
    pub address: Text,
    /// Its hardware address, or that of the relay in front of it.
    pub mac: Text,
    /// Vendor of its MAC address; may be empty.
    pub vendor: Text,
    /// First address that it offered; may be empty.
    pub offered: Text,
    /// Time of its last packet.
    pub heard: Option<Timestamp>,
}

impl Nic {
    /// The address without the length of the prefix.
    pub fn address(&self) -> Option<&str> {
        let bare = self.address.split('/').next()?;
        (!bare.is_empty()).then_some(bare)
    }

    /// Machines are plugged in here.
    pub fn provisions(&self) -> bool {
        matches!(self.role, Role::Provisioning | Role::Both)
    }

    /// Something is answered here now.
    pub fn armed(&self) -> bool {
        self.mode != Mode::Off && self.armed_since.is_some()
    }

    /// True if DHCP stopped because of another DHCP server (NW-6).
    pub fn stopped(&self) -> bool {
        matches!(self.mode, Mode::Reserved | Mode::Pool) && !self.foreign.is_empty()
    }

    /// `1 Gb/s`, `2.5 Gb/s`, `100 Mb/s`, `no cable`.
    pub fn link(&self) -> String {
        match self.link_mbps {
            None => "no cable".to_owned(),
            Some(mbps) if mbps < 1000 => format!("{mbps} Mb/s"),
            Some(mbps) if mbps % 1000 == 0 => format!("{} Gb/s", mbps / 1000),
            Some(mbps) => format!("{:.1} Gb/s", f64::from(mbps) / 1000.0),
        }
    }
}
