//! Properties of a network interface, read from the kernel.

use std::io;
use std::net::Ipv6Addr;
use std::path::Path;

use super::plan::Nic;

/// IPv4 routes of the kernel, one per line: interface, destination, … Addresses are hexadecimal.
const ROUTES: &str = "/proc/net/route";
/// IPv6 addresses of the kernel, one per line in hexadecimal: address, interface index, prefix
/// length, scope (0: global), flags, interface.
const ADDRESSES: &str = "/proc/net/if_inet6";

/// Reads the properties of an interface for the check if DHCP may be served (NW-4).
///
/// # Errors
/// The interface does not exist, or is not an Ethernet interface.
pub fn read(interface: &str) -> io::Result<Nic> {
    let file = Path::new("/sys/class/net").join(interface).join("address");
    let mac = std::fs::read_to_string(file)?.trim().parse().map_err(io::Error::other)?;
    let routes = std::fs::read_to_string(ROUTES)?;
    Ok(Nic { mac, default_route: has_default_route(&routes, interface) })
}

/// Returns the first global IPv6 address of an interface, which machines behind routers can reach.
///
/// # Errors
/// The interface has no global IPv6 address.
pub fn ipv6(interface: &str) -> io::Result<Ipv6Addr> {
    let table = std::fs::read_to_string(ADDRESSES)?;
    global_address(&table, interface).ok_or_else(|| {
        let why = format!("{interface} has no IPv6 address: give it one, such as fd77::1/64");
        io::Error::new(io::ErrorKind::AddrNotAvailable, why)
    })
}

fn global_address(table: &str, interface: &str) -> Option<Ipv6Addr> {
    table.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let address = u128::from_str_radix(fields.next()?, 16).ok()?;
        let (scope, name) = (fields.nth(2)?, fields.nth(1)?);
        (scope == "00" && name == interface).then(|| Ipv6Addr::from_bits(address))
    })
}

fn has_default_route(routes: &str, interface: &str) -> bool {
    routes.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace();
        fields.next() == Some(interface)
            && fields.next() == Some("00000000")
            && fields.nth(5) == Some("00000000")
    })
}

#[cfg(test)]
mod tests {
    use super::{global_address, has_default_route, read};

    const ROUTES: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n\
        eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        eth1\t00004D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        eth2\t00000000\t0100000A\t0003\t0\t0\t0\t00000080\t0\t0\t0\n";

    #[test]
    fn the_default_route_is_told_from_others() {
        assert!(has_default_route(ROUTES, "eth0"));
        assert!(!has_default_route(ROUTES, "eth1"));
        assert!(!has_default_route(ROUTES, "eth2"), "half of the world is not all of it");
        assert!(!has_default_route("", "eth0"));
    }

    #[test]
    fn a_link_local_address_is_none_for_others() {
        let table = "fe80000000000000505400fffe770001 02 40 20 80     eth0\n\
            fd770000000000000000000000000001 02 40 00 80     eth0\n";
        assert_eq!(global_address(table, "eth0"), Some("fd77::1".parse().unwrap()));
        assert_eq!(global_address(table, "eth1"), None);
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        assert!(read("nuc-7-not-here").is_err());
    }
}
