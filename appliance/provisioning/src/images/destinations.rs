//! Check of the addresses from which the box may download files for machines.
//!
//! The author of a template chooses the URL, and servers may redirect. Without a check, the box
//! would expose its own loopback services and its management network to the rack. The check uses
//! the address of the connection, not the text of a URL.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::Arc;

use artifact_cache::RefusedAddress;
use ipnet::IpNet;

use super::routes::Routes;

/// Networks that are allowed in addition to the default route. Clones share the data.
#[derive(Clone)]
pub struct Destinations(Arc<[IpNet]>);

impl Destinations {
    /// Creates a check for `networks` and all addresses behind an interface with a default route.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks.into())
    }

    /// Checks an address against the current interfaces and routes of the box.
    ///
    /// # Errors
    /// The address is not allowed. The error contains the reason as a sentence, with the setting
    /// that allows the address, if there is one.
    pub fn check(&self, address: IpAddr) -> Result<(), RefusedAddress> {
        judge(address, &self.0, is_own, &Routes::read())
    }
}

/// Checks an address without access to the operating system.
fn judge(
    address: IpAddr,
    networks: &[IpNet],
    is_own: impl Fn(IpAddr) -> bool,
    routes: &Routes,
) -> Result<(), RefusedAddress> {
    let address = address.to_canonical();
    let spellings = [Some(address), carried(address)];
    for address in spellings.into_iter().flatten() {
        if is_never_foreign(address) || is_own(address) {
            return Err(RefusedAddress(format!(
                "{address} is the box itself or a link-local address: the box fetches no files \
                 from there; use another server"
            )));
        }
        let is_named = networks.iter().any(|network| network.contains(&address));
        if let Some(interface) = routes.beside_default(address).filter(|_| !is_named) {
            return Err(RefusedAddress(format!(
                "{address} is reached by {interface}, not by the default route, so the box \
                 fetches no files from there: add the network of this address to \"networks\" of \
                 [images]"
            )));
        }
    }
    Ok(())
}

/// Returns true for loopback, link-local, unspecified, multicast and broadcast addresses.
fn is_never_foreign(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => {
            let is_this_host = ip.octets()[0] == 0;
            is_this_host
                || ip.is_loopback()
                || ip.is_link_local()
                || ip.is_multicast()
                || ip.is_broadcast()
        }
        IpAddr::V6(ip) => {
            ip.is_loopback()
                || ip.is_unicast_link_local()
                || ip.is_unspecified()
                || ip.is_multicast()
        }
    }
}

/// Returns the IPv4 address to which a translator or tunnel forwards an IPv6 address: NAT64 (RFC
/// 6052 section 2.1), 6to4 (RFC 3056), and IPv4-compatible addresses. `None` for any other address.
fn carried(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else { return None };
    let ipv4 =
        |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into();
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(ipv4(high, low)),
        [0x2002, high, low, ..] => Some(ipv4(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if address != Ipv6Addr::LOCALHOST => Some(ipv4(high, low)),
        _ => None,
    }
}

/// Returns true for an address of the box itself: a socket can be bound only to such an address.
pub fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests;
