//! Free addresses in the networks of the box.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use api::network::{Mode, NetworkPlan, SubnetPlan};
use api::tinkerbell::Hardware;
use serde_json::Value;

/// First host number that is proposed, so that the low addresses stay free for devices of the site.
const FIRST_HOST: u32 = 11;
/// Maximum number of addresses that are tried.
const TRIES_MAX: u32 = 4096;

/// Returns the network whose DHCP service a new machine uses: the first one that assigns addresses.
pub(crate) fn serving(networks: &[NetworkPlan]) -> Option<&NetworkPlan> {
    let assigns = |it: &&NetworkPlan| matches!(it.mode, Mode::Reserved | Mode::Pool);
    let mut serving = networks.iter().filter(assigns);
    serving.next().or_else(|| networks.iter().find(|it| it.mode == Mode::Proxy))
}

/// Returns the network of the box that contains `address`.
pub(crate) fn subnet_of(networks: &[NetworkPlan], address: Ipv4Addr) -> Option<&SubnetPlan> {
    networks.iter().flat_map(|it| &it.subnets).find(|it| it.contains(address))
}

/// Returns a free address for a new machine; `None` if a pool or another DHCP server assigns one,
/// or if the network is full.
pub(crate) fn propose(networks: &[NetworkPlan], hardware: &[Value]) -> Option<String> {
    let network = serving(networks).filter(|it| it.mode == Mode::Reserved)?;
    let subnet = network.subnets.first()?;
    let taken: BTreeSet<Ipv4Addr> = hardware.iter().flat_map(addresses).collect();
    let first = subnet.network.to_bits();
    // Neither the network itself nor its broadcast address.
    let hosts = 1_u32.checked_shl(32 - u32::from(subnet.length))?.checked_sub(1)?;
    let free = |address: &Ipv4Addr| {
        !taken.contains(address)
            && *address != network.address
            && Some(*address) != subnet.gateway
            && !subnet.ranges.iter().any(|range| range.contains(address))
    };
    let numbers = (FIRST_HOST.min(hosts)..hosts).chain(1..FIRST_HOST.min(hosts));
    let mut candidates = numbers.take(TRIES_MAX as usize).map(|it| Ipv4Addr::from_bits(first + it));
    candidates.find(free).map(|it| it.to_string())
}

fn addresses(hardware: &Value) -> Vec<Ipv4Addr> {
    let typed: Hardware = serde_json::from_value(hardware.clone()).unwrap_or_default();
    let ipv4 = |address: IpAddr| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    };
    typed.spec.addresses().filter_map(ipv4).collect()
}

#[cfg(test)]
mod tests {
    use api::network::{Mode, NetworkPlan, NetworkSpec, SubnetSettings};
    use serde_json::{Value, json};

    use super::propose;

    fn network(address: &str, mode: Mode, gateway: &str, pool: &[&str]) -> NetworkPlan {
        let pool = pool.iter().map(|it| (*it).to_owned()).collect();
        let own = SubnetSettings { gateway: gateway.into(), pool, ..SubnetSettings::default() };
        let (interface, address) = ("eth1".into(), address.into());
        NetworkSpec { interface, address, mode, own, ..NetworkSpec::default() }.plan().unwrap()
    }

    fn hardware(address: &str) -> Value {
        json!({ "spec": { "interfaces": [{ "dhcp": { "ip": { "address": address } } }] } })
    }

    #[test]
    fn the_first_address_that_is_not_in_use_is_proposed() {
        let reserved = [network("10.77.0.1/24", Mode::Reserved, "10.77.0.12", &[])];
        assert_eq!(propose(&reserved, &[]).as_deref(), Some("10.77.0.11"));
        let used = [hardware("10.77.0.11"), hardware("fd77::1"), hardware("nonsense")];
        assert_eq!(propose(&reserved, &used).as_deref(), Some("10.77.0.13"));
    }

    #[test]
    fn a_small_network_is_used_from_its_start_and_can_be_full() {
        let small = [network("10.77.0.1/29", Mode::Reserved, "", &[])];
        let used: Vec<Value> = (2..6).map(|it| hardware(&format!("10.77.0.{it}"))).collect();
        assert_eq!(propose(&small, &used).as_deref(), Some("10.77.0.6"));
        let full: Vec<Value> = (2..7).map(|it| hardware(&format!("10.77.0.{it}"))).collect();
        assert_eq!(propose(&small, &full), None);
    }

    #[test]
    fn a_pool_or_another_server_assigns_the_address_itself() {
        let pool = network("10.77.0.1/24", Mode::Pool, "", &["10.77.0.100-10.77.0.110"]);
        assert_eq!(propose(&[pool], &[]), None);
        let proxy = network("10.77.0.1/24", Mode::Proxy, "", &[]);
        assert_eq!(propose(std::slice::from_ref(&proxy), &[]), None);
        let off = network("10.78.0.1/24", Mode::Off, "", &[]);
        let reserved = network("10.79.0.1/24", Mode::Reserved, "", &[]);
        let proposed = propose(&[off, proxy, reserved], &[]);
        assert_eq!(proposed.as_deref(), Some("10.79.0.11"));
    }
}
