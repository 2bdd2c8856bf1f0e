//! `[management]`: interfaces on which the owner reaches a flashed box.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use platform::net::{
    Address, Addressing, ClientIdentity, InterfaceConfig, InterfaceSelector, NAME_SERVERS, VLANS,
};
use serde::Deserialize;

use super::{Bond, Network};

/// Vendor class of the box's DHCP client (option 60).
const VENDOR_CLASS: &str = "tinbox";

/// Interface on the owner's network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Management {
    /// Required. Linux name of the interface, such as `eth0`.
    pub interface: String,
    /// Static address with prefix length: `192.168.1.5/24`. Default: an address from a DHCP server.
    pub address: Option<String>,
    /// Gateway of the default route; only with `address`. Default: none.
    pub gateway: Option<Ipv4Addr>,
    /// Addresses of DNS servers; only with `address`. The box uses the first three. Default: none.
    #[serde(default)]
    pub name_servers: Vec<Ipv4Addr>,
    /// VLAN of the owner's network on the interface, 1 to 4094. Default: untagged.
    pub vlan: Option<u16>,
    /// NICs that form the interface as a bond. Default: the interface is a NIC.
    pub bond: Option<Bond>,
    /// Leave the interface without an address: no static address and no DHCP request.
    #[serde(default)]
    pub unused: bool,
}

impl Management {
    /// Returns the settings of an interface without a table: an address by DHCP.
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

    /// Returns the interface configuration for the platform. `name` is the host name that the DHCP
    /// client sends.
    pub fn wanted(&self, name: &str) -> InterfaceConfig {
        let net = self.address.as_ref().and_then(|text| text.parse::<Ipv4Net>().ok());
        let fixed = net.map(|net| Address {
            address: net.addr(),
            prefix: net.prefix_len(),
            router: self.gateway,
            name_servers: self.name_servers.iter().copied().take(NAME_SERVERS).collect(),
        });
        InterfaceConfig {
            interface: InterfaceSelector::Name(self.interface.clone()),
            vlan: self.vlan,
            addressing: fixed.map_or(Addressing::Dhcp, Addressing::Fixed),
            caller: ClientIdentity { class: VENDOR_CLASS, name: name.to_owned() },
        }
    }
}

/// Returns every mistake; each text begins with its key.
pub fn problems(all: &[Management], racks: &[Network]) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let mut say = |key: &str, what: String| {
            problems.push(format!("management[{at}].{key}: {what}"));
        };
        if let Some(text) = one.address.as_ref().filter(|text| text.parse::<Ipv4Net>().is_err()) {
            say("address", format!("expected an address such as 192.168.1.5/24, found {text:?}"));
        }
        if one.address.is_none() && (one.gateway.is_some() || !one.name_servers.is_empty()) {
            say("gateway", "needs a static address; without one, DHCP provides it".to_owned());
        }
        if let Some(vlan) = one.vlan.filter(|vlan| !VLANS.contains(vlan)) {
            let (from, to) = (VLANS.start(), VLANS.end());
            say("vlan", format!("expected a VLAN ID from {from} to {to}, found {vlan}"));
        }
        if one.unused && (one.address.is_some() || one.vlan.is_some()) {
            say("unused", "an unused interface cannot have an address or a VLAN".to_owned());
        }
        let name = &one.interface;
        let shares = racks.iter().any(|rack| rack.interface == *name && rack.is_shared());
        if shares && one.unused {
            say("unused", format!("{name} is used by a provisioning network"));
        }
        let racks = racks.iter().any(|rack| rack.interface == *name && !rack.is_shared());
        if racks && one.vlan.is_none() {
            say("interface", format!("{name} is already used by a provisioning network"));
        }
        let same = |other: &Management| other.interface == *name && other.vlan == one.vlan;
        if all[..at].iter().any(same) {
            say("interface", format!("{name} is listed twice"));
        }
    }
    problems
}
