//! Addresses from which the box fetches files for machines.
//!
//! A template's author names the URL, and servers redirect. A box that fetched from anywhere would
//! show its own loopback services and its management network to the rack. So the address that is
//! connected to decides, not the text of a URL.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::Arc;

use artifact_cache::RefusedAddress;
use ipnet::IpNet;

use super::routes::Routes;

/// The rule of one box. Cheap to clone.
#[derive(Clone)]
pub struct Destinations(Arc<[IpNet]>);

impl Destinations {
    /// Fetches from `networks` too, beside those of the default routes.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks.into())
    }

    /// Checks an address as the box's interfaces and routes are now.
    ///
    /// # Errors
    /// The reason, as a sentence, with the setting that allows the address if there is one.
    pub fn check(&self, address: IpAddr) -> Result<(), RefusedAddress> {
        judge(address, &self.0, is_own, &Routes::read())
    }
}

/// The same, pure.
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
                "{address} is the box itself or never leaves the link: the box fetches no file \
                 from there; name another server"
            )));
        }
        let is_named = networks.iter().any(|network| network.contains(&address));
        if let Some(interface) = routes.beside_default(address).filter(|_| !is_named) {
            return Err(RefusedAddress(format!(
                "{address} is reached by {interface}, not by the default route, and the box \
                 fetches no file from there: add its network to \"networks\" of [images]"
            )));
        }
    }
    Ok(())
}

/// Loopback, link-local, unspecified, multicast and broadcast addresses.
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

/// The IPv4 address that a translator or tunnel sends an IPv6 one to: NAT64 (RFC 6052 section 2.1),
/// 6to4 (RFC 3056), and the IPv4-compatible form.
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

/// Returns true for an address of one of the box's interfaces: no socket is bound to another.
fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests;
