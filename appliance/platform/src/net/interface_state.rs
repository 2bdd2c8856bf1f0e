//! Current state of the machine's Ethernet interfaces.

use std::collections::HashMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use futures_util::TryStreamExt as _;
use rtnetlink::packet_route::address::AddressAttribute;

use super::bond;
use super::link::{Link, links};
use super::netlink::Netlink;
use super::virtual_address;
use crate::Error;

/// Current state of an Ethernet interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceState {
    /// Name, index and hardware address of the interface.
    pub link: Link,
    /// Link speed in Mbit/s: `None` without a link, 0 if the NIC does not report a speed.
    pub mbps: Option<u32>,
    /// IP addresses with their prefix lengths, without virtual addresses of the box.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Name of the bond or bridge of which the interface is a port; `None` otherwise.
    pub port_of: Option<String>,
}

/// Returns the state of all Ethernet interfaces, in the order of their indexes.
///
/// # Errors
/// The kernel does not list the addresses.
pub async fn look() -> Result<Vec<InterfaceState>, Error> {
    let netlink = Netlink::open()?;
    let mut of_link: HashMap<u32, Vec<(IpAddr, u8)>> = HashMap::new();
    let mut all = netlink.0.address().get().execute();
    while let Some(message) = all.try_next().await.map_err(Error::netlink("list addresses"))? {
        if virtual_address::is_virtual(&message) {
            continue;
        }
        // For a point-to-point link, the attribute IFA_LOCAL has the own address.
        let local = message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Local(address) => Some(*address),
            _ => None,
        });
        let address = local.or_else(|| {
            message.attributes.iter().find_map(|attribute| match attribute {
                AddressAttribute::Address(address) => Some(*address),
                _ => None,
            })
        });
        let prefix = message.header.prefix_len;
        of_link.entry(message.header.index).or_default().extend(address.map(|it| (it, prefix)));
    }
    let seen = |link: Link| InterfaceState {
        mbps: mbps(&link.name),
        port_of: bond::master(&link.name),
        addresses: of_link.remove(&link.index).unwrap_or_default(),
        link,
    };
    Ok(links().into_iter().map(seen).collect())
}

fn mbps(name: &str) -> Option<u32> {
    let read = |file: &str| fs::read_to_string(Path::new("/sys/class/net").join(name).join(file));
    let carrier = read("carrier").is_ok_and(|text| text.trim() == "1");
    let speed = || read("speed").ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    carrier.then(speed)
}
