//! A network interface: whom it is for, and what the box answers there.

use api::network::Mode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stdx::MacAddr;

use super::Text;

/// Whom an interface is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Nobody.
    #[default]
    Unused,
    /// People.
    Management,
    /// Machines.
    Provisioning,
    /// People and machines.
    Both,
}

impl Role {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            Role::Unused => "unused",
            Role::Management => "management",
            Role::Provisioning => "provisioning",
            Role::Both => "both",
        }
    }
}

/// An interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Nic {
    /// `eth1`.
    pub name: Text,
    /// Its hardware address.
    pub mac: Option<MacAddr>,
    /// Megabits a second; `None` without a cable.
    pub link_mbps: Option<u32>,
    /// When the cable was plugged or pulled last.
    pub link_since: Option<Timestamp>,
    /// Whom it is for.
    pub role: Role,
    /// Its address with the length of the prefix: `10.20.30.40/24`; empty when it has none.
    pub address: Text,
    /// What DHCP clients are to be answered.
    pub mode: Mode,
    /// Since when they are; `None`: they are not.
    pub armed_since: Option<Timestamp>,
    /// Why nothing is answered although it should be; may be empty.
    pub held: Text,
    /// Other DHCP servers that were heard.
    pub foreign: Vec<ForeignServer>,
    /// When other servers were looked for last.
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
    /// Its address.
    pub address: Text,
    /// Its hardware address, or that of the relay in front of it.
    pub mac: Text,
    /// Who made it, by that; may be empty.
    pub vendor: Text,
    /// The first address it was heard to offer; may be empty.
    pub offered: Text,
    /// When it was heard last.
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

    /// It gave addresses away and stopped, because somebody else does (NW-6).
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
