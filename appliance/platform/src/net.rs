//! An interface up, with an address of its own and a default route: by DHCP or as somebody wrote
//! it, on the wire itself or in a VLAN.

mod arp;
mod bond;
pub mod dhcp;
mod lease;
mod link;
mod link_local;
mod netlink;
mod seen;

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use stdx::MacAddr;

pub use crate::sys::lldp_socket;
pub use bond::{Bond, BondMode, bond};
pub use lease::{Configured, assign, configure, keep};
pub use link::{Link, links, loopback_up};
pub use link_local::{leave as leave_link_local, stand_in};
pub use seen::{Seen, look};

/// Bytes of an interface's name (IFNAMSIZ, less the zero at its end).
pub const NAME_MAX: usize = 15;

/// VLANs that a frame can be in (IEEE 802.1Q; 0 is none, 4095 is reserved).
pub const VLANS: RangeInclusive<u16> = 1..=4094;

/// What an interface is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Which one.
    pub interface: Which,
    /// In this VLAN; otherwise on the wire itself.
    pub vlan: Option<u16>,
    /// Its address.
    pub addressing: Addressing,
    /// Who asks for it.
    pub caller: Caller,
}

impl Wanted {
    /// The name of the interface that has the address in the end, as far as it is known.
    pub fn name(&self) -> Option<String> {
        match (&self.interface, self.vlan) {
            (Which::Name(name), None) => Some(name.clone()),
            (Which::Name(name), Some(id)) => Some(lease::vlan_name(name, id)),
            (Which::Any | Which::Mac(_), _) => None,
        }
    }
}

/// What DHCP servers are told of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The vendor class (RFC 2132 section 9.13), at most 255 bytes.
    pub class: &'static str,
    /// The name that it would like to have (RFC 2132 section 3.14), at most 255 bytes; empty when
    /// it has none.
    pub name: String,
}

/// An interface by what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The first with a link.
    Any,
    /// The one with this hardware address.
    Mac(MacAddr),
    /// The one with this name.
    Name(String),
}

impl Which {
    fn is(&self, link: &Link) -> bool {
        match self {
            Self::Any => true,
            Self::Mac(mac) => link.mac == *mac,
            Self::Name(name) => link.name == *name,
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("network interface"),
            Self::Mac(mac) => write!(f, "network interface {mac}"),
            Self::Name(name) => write!(f, "network interface {name}"),
        }
    }
}

/// Where an address comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addressing {
    /// A DHCP server's.
    Dhcp,
    /// Written down.
    Fixed(Address),
}

/// An address with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Ours.
    pub address: Ipv4Addr,
    /// Bits of the network.
    pub prefix: u8,
    /// The default route's gateway.
    pub router: Option<Ipv4Addr>,
    /// Name servers, at most [`NAME_SERVERS`].
    pub name_servers: Vec<Ipv4Addr>,
}

/// Name servers kept: as many as a resolver uses.
pub const NAME_SERVERS: usize = 3;
/// Time servers kept: enough for one of them to be wrong.
pub const TIME_SERVERS: usize = 4;

/// The length of a netmask; `None` for one with a gap, which is none.
pub fn prefix_of(mask: Ipv4Addr) -> Option<u8> {
    let mask = mask.to_bits();
    let prefix = mask.leading_ones();
    (mask.count_ones() == prefix).then(|| u8::try_from(prefix).ok()).flatten()
}
