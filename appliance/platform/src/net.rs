//! Configuration of a network interface: its link, its IP address and a default route. The address
//! comes from DHCP or from the settings, on the untagged network or in a VLAN.

mod arp;
mod bond;
pub mod dhcp;
mod interface_state;
mod lease;
mod link;
mod link_local;
mod netlink;
mod virtual_address;

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use stdx::MacAddr;

pub use crate::sys::lldp_socket;
pub use bond::{Bond, BondMode, bond};
pub use interface_state::{InterfaceState, look};
pub use lease::{ConfiguredInterface, assign, configure, keep};
pub use link::{Link, links, loopback_up};
pub use link_local::{leave as leave_link_local, stand_in};
pub use virtual_address::{Claim, Confirmation, VirtualAddress};

/// Maximum length of an interface name in bytes (IFNAMSIZ without the terminating zero).
pub const NAME_MAX: usize = 15;

/// Valid VLAN IDs of a frame (IEEE 802.1Q; 0 means untagged, 4095 is reserved).
pub const VLANS: RangeInclusive<u16> = 1..=4094;

/// Requested configuration of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Selector of the interface to configure.
    pub interface: InterfaceSelector,
    /// VLAN ID, or `None` for the untagged network.
    pub vlan: Option<u16>,
    /// Source of the IP address.
    pub addressing: Addressing,
    /// Identification that is sent to DHCP servers.
    pub caller: ClientIdentity,
}

impl InterfaceConfig {
    /// Returns the name of the interface that gets the address, or `None` before it is selected.
    pub fn name(&self) -> Option<String> {
        match (&self.interface, self.vlan) {
            (InterfaceSelector::Name(name), None) => Some(name.clone()),
            (InterfaceSelector::Name(name), Some(id)) => Some(lease::vlan_name(name, id)),
            (InterfaceSelector::Any | InterfaceSelector::Mac(_), _) => None,
        }
    }
}

/// Identification of this machine in DHCP requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// Vendor class (RFC 2132 section 9.13), at most 255 bytes.
    pub class: &'static str,
    /// Requested host name (RFC 2132 section 3.14), at most 255 bytes. Empty if none is requested.
    pub name: String,
}

/// Selector of a network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterfaceSelector {
    /// First interface with a link.
    Any,
    /// Interface with this hardware address.
    Mac(MacAddr),
    /// Interface with this name.
    Name(String),
}

impl InterfaceSelector {
    fn is(&self, link: &Link) -> bool {
        match self {
            Self::Any => true,
            Self::Mac(mac) => link.mac == *mac,
            Self::Name(name) => link.name == *name,
        }
    }
}

impl fmt::Display for InterfaceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("network interface"),
            Self::Mac(mac) => write!(f, "network interface {mac}"),
            Self::Name(name) => write!(f, "network interface {name}"),
        }
    }
}

/// Source of an IP address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addressing {
    /// Lease of a DHCP server.
    Dhcp,
    /// Fixed address from the settings.
    Fixed(Address),
}

/// IPv4 address with its network parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Address of this machine.
    pub address: Ipv4Addr,
    /// Prefix length of the network.
    pub prefix: u8,
    /// Gateway of the default route.
    pub router: Option<Ipv4Addr>,
    /// Name servers, at most [`NAME_SERVERS`].
    pub name_servers: Vec<Ipv4Addr>,
}

/// Maximum number of name servers, equal to the limit of the resolver.
pub const NAME_SERVERS: usize = 3;
/// Maximum number of NTP servers from a lease: enough to detect one wrong server.
pub const TIME_SERVERS: usize = 4;

/// Returns the prefix length of a netmask, or `None` if the one bits are not contiguous.
pub fn prefix_of(mask: Ipv4Addr) -> Option<u8> {
    let mask = mask.to_bits();
    let prefix = mask.leading_ones();
    (mask.count_ones() == prefix).then(|| u8::try_from(prefix).ok()).flatten()
}
