//! Reader of the kernel's main routing table, to find the interface for an address.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// IPv4 routes with the columns interface, destination, gateway, flags, …, metric, mask. Numbers
/// are hexadecimal, and addresses have the byte order of the CPU.
const IPV4: &str = "/proc/net/route";
/// IPv6 routes with the columns destination, prefix length, …, metric, …, flags, interface. Numbers
/// are hexadecimal.
const IPV6: &str = "/proc/net/ipv6_route";
/// Route flags of `linux/route.h`: usable route, and reject route.
const RTF_UP: u32 = 0x0001;
const RTF_REJECT: u32 = 0x0200;

/// Usable routes, without reject routes.
#[derive(Debug, Default)]
pub struct Routes(Vec<Route>);

#[derive(Debug, PartialEq, Eq)]
struct Route {
    to: IpNet,
    metric: u32,
    interface: String,
}

impl Routes {
    /// Reads the routes of the kernel. An unreadable table counts as empty, because the kernel then
    /// has no route to any address.
    pub fn read() -> Self {
        let text = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self::parse(&text(IPV4), &text(IPV6))
    }

    /// Parses the IPv4 and the IPv6 table of the kernel.
    pub fn parse(ipv4: &str, ipv6: &str) -> Self {
        let ipv4 = ipv4.lines().skip(1).filter_map(ipv4_route);
        Self(ipv4.chain(ipv6.lines().filter_map(ipv6_route)).collect())
    }

    /// Returns the interface for an address; `None` if a default route uses it or no route matches.
    pub fn beside_default(&self, address: IpAddr) -> Option<&str> {
        let is_default = |route: &&Route| route.to.prefix_len() == 0;
        let default: BTreeSet<&str> =
            self.0.iter().filter(is_default).map(|route| &*route.interface).collect();
        let fitting = self.0.iter().filter(|route| route.to.contains(&address));
        let best = fitting.min_by_key(|route| (u8::MAX - route.to.prefix_len(), route.metric))?;
        let interface = &*best.interface;
        (!default.contains(interface)).then_some(interface)
    }
}

fn ipv4_route(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [interface, destination, _, flags, _, _, metric, mask, ..] = fields[..] else {
        return None;
    };
    let address = |text| u32::from_str_radix(text, 16).ok().map(u32::to_ne_bytes);
    let to = Ipv4Net::with_netmask(
        Ipv4Addr::from(address(destination)?),
        Ipv4Addr::from(address(mask)?),
    );
    let is_used = is_used(u32::from_str_radix(flags, 16).ok()?);
    let route = Route {
        to: to.ok()?.into(),
        metric: metric.parse().ok()?,
        interface: interface.to_owned(),
    };
    is_used.then_some(route)
}

fn ipv6_route(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [destination, length, _, _, _, metric, _, _, flags, interface] = fields[..] else {
        return None;
    };
    let address = u128::from_str_radix(destination, 16).ok()?;
    let to = Ipv6Net::new(Ipv6Addr::from_bits(address), u8::from_str_radix(length, 16).ok()?);
    let is_used = is_used(u32::from_str_radix(flags, 16).ok()?);
    let route = Route {
        to: to.ok()?.into(),
        metric: u32::from_str_radix(metric, 16).ok()?,
        interface: interface.to_owned(),
    };
    is_used.then_some(route)
}

fn is_used(flags: u32) -> bool {
    flags & RTF_UP != 0 && flags & RTF_REJECT == 0
}

#[cfg(test)]
mod tests {
    use super::Routes;

    /// Routing tables: uplink eth0 with its router, rack eth1, and a network behind a router of the
    /// rack.
    #[cfg(target_endian = "little")]
    const IPV4: &str = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
        eth0 00000000 0100A8C0 0003 0 0 0 00000000 0 0 0\n\
        eth0 0000A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n\
        eth1 00004D0A 00000000 0001 0 0 0 00FFFFFF 0 0 0\n\
        eth1 000010AC FE4D0A00 0003 0 0 0 0000FFFF 0 0 0\n";
    const IPV6: &str = "\
        fd770000000000000000000000000000 40 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth1\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
        fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";

    #[test]
    #[cfg(target_endian = "little")]
    fn networks_beside_the_default_routes_are_told_apart() {
        let routes = Routes::parse(IPV4, IPV6);
        let beside = |address: &str| routes.beside_default(address.parse().unwrap());
        assert_eq!(beside("192.168.0.7"), None);
        assert_eq!(beside("198.51.100.7"), None);
        assert_eq!(beside("10.77.0.9"), Some("eth1"));
        assert_eq!(beside("172.16.5.5"), Some("eth1"));
        assert_eq!(beside("fd77::9"), Some("eth1"));
        assert_eq!(beside("2001:db8::1"), None);
        let none = Routes::parse("", "");
        assert_eq!(none.beside_default([10, 77, 0, 9].into()), None, "it is not reached at all");
    }
}
