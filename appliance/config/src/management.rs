//! `[management]`: how a box that is firmware is reached by its owner.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use platform::net::{Address, Addressing, Caller, NAME_SERVERS, VLANS, Wanted, Which};
use serde::Deserialize;

use super::{Bond, Network};

/// What DHCP servers are told this is.
const VENDOR_CLASS: &str = "tinbox";

/// An interface with an address of the owner's network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Management {
    /// The interface.
    pub interface: String,
    /// Its address, `192.168.1.5/24`; a DHCP server's when it is left out.
    pub address: Option<String>,
    /// The default route's gateway, beside an address.
    pub gateway: Option<Ipv4Addr>,
    /// Resolvers, beside an address.
    #[serde(default)]
    pub name_servers: Vec<Ipv4Addr>,
    /// The VLAN whose frames are the owner's.
    pub vlan: Option<u16>,
    /// The cards that the interface is made of.
    pub bond: Option<Bond>,
    /// Nobody's: the box gives it no address and asks for none.
    #[serde(default)]
    pub unused: bool,
}

impl Management {
    /// By DHCP, for an interface that nobody named.
    pub fn by_dhcp(interface: String) -> Self {
        Self {
            interface,
            address: None,
            gateway: None,
            name_servers: Vec::new(),
            vlan: None,
            bond: None,
            unused: false,
        }
    }

    /// As the network takes it.
    ///
    /// `name`: the box's, for DHCP servers.
    pub fn wanted(&self, name: &str) -> Wanted {
        let net = self.address.as_ref().and_then(|text| text.parse::<Ipv4Net>().ok());
        let fixed = net.map(|net| Address {
            address: net.addr(),
            prefix: net.prefix_len(),
            router: self.gateway,
            name_servers: self.name_servers.iter().copied().take(NAME_SERVERS).collect(),
        });
        Wanted {
            interface: Which::Name(self.interface.clone()),
            vlan: self.vlan,
            addressing: fixed.map_or(Addressing::Dhcp, Addressing::Fixed),
            caller: Caller { class: VENDOR_CLASS, name: name.to_owned() },
        }
    }
}

/// Every mistake, by key.
pub fn problems(all: &[Management], racks: &[Network]) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let mut say = |key: &str, what: String| {
            problems.push(format!("management[{at}].{key}: {what}"));
        };
        if let Some(text) = one.address.as_ref().filter(|text| text.parse::<Ipv4Net>().is_err()) {
            say("address", format!("{text:?} is no address with a prefix, as 192.168.1.5/24"));
        }
        if one.address.is_none() && (one.gateway.is_some() || !one.name_servers.is_empty()) {
            say("gateway", "it comes from the DHCP server, as the address does".to_owned());
        }
        if let Some(vlan) = one.vlan.filter(|vlan| !VLANS.contains(vlan)) {
            let (from, to) = (VLANS.start(), VLANS.end());
            say("vlan", format!("{vlan} is no VLAN from {from} to {to}"));
        }
        if one.unused && (one.address.is_some() || one.vlan.is_some()) {
            say("unused", "an interface that is nobody's has neither address nor VLAN".to_owned());
        }
        let name = &one.interface;
        let shares = racks.iter().any(|rack| rack.interface == *name && rack.is_shared());
        if shares && one.unused {
            say("unused", format!("{name} is a rack's network"));
        }
        let racks = racks.iter().any(|rack| rack.interface == *name && !rack.is_shared());
        if racks && one.vlan.is_none() {
            say("interface", format!("{name} is a rack's network already"));
        }
        let same = |other: &Management| other.interface == *name && other.vlan == one.vlan;
        if all[..at].iter().any(same) {
            say("interface", format!("{name} is there twice"));
        }
    }
    problems
}
