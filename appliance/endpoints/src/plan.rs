//! Endpoints that the box must have, decided from its objects alone.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use api::network::NetworkPlan;
use api::network::control_plane_endpoint::{ControlPlaneEndpoint, network_of};
use platform::net::VirtualAddress;

use crate::state::State;

/// Maximum number of endpoints of a box.
pub const ENDPOINTS_MAX: usize = 16;

/// Endpoint that the box must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Address and its interface.
    pub at: VirtualAddress,
    /// TCP port of the endpoint.
    pub port: u16,
    /// Machines of the control plane.
    pub backends: Vec<SocketAddrV4>,
}

/// Returns the endpoints by the name of their object, with the state of those that the box cannot
/// have. An object that is being deleted is left out.
pub fn plan(
    objects: &[ControlPlaneEndpoint],
    networks: &[NetworkPlan],
) -> BTreeMap<String, Result<Planned, State>> {
    let mut planned = BTreeMap::new();
    let mut count = 0;
    let virtual_addresses: Vec<Ipv4Addr> =
        objects.iter().filter_map(|it| it.spec.address.parse().ok()).collect();
    // The oldest objects first, so that a new object never displaces another.
    let mut objects: Vec<_> = objects.iter().collect();
    objects.sort_by_key(|it| (it.metadata.creation_timestamp, it.metadata.name.clone()));
    for object in objects.into_iter().filter(|it| it.metadata.deletion_timestamp.is_none()) {
        let found = endpoint(object, networks, &virtual_addresses).ok_or(State::NotInNetwork);
        let found = if count < ENDPOINTS_MAX { found } else { Err(State::TooMany) };
        count += usize::from(found.is_ok());
        planned.insert(object.metadata.name.clone(), found);
    }
    planned
}

fn endpoint(
    object: &ControlPlaneEndpoint,
    networks: &[NetworkPlan],
    virtual_addresses: &[Ipv4Addr],
) -> Option<Planned> {
    let address: Ipv4Addr = object.spec.address.parse().ok()?;
    // The name makes an address unique.
    let network =
        network_of(address, networks).filter(|_| object.metadata.name == object.spec.address)?;
    // Without this check, the author of an object could reach the box's own services, the router
    // or other networks, or connect endpoints to a loop.
    let is_machine = |it: &Ipv4Addr| {
        let is_own = networks.iter().any(|network| network.address == *it);
        let mut subnets = network.subnets.iter();
        let is_router = subnets.clone().any(|subnet| subnet.gateway == Some(*it));
        subnets.any(|subnet| subnet.contains(*it))
            && !is_own
            && !is_router
            && !virtual_addresses.contains(it)
    };
    let backends = object.spec.backends.iter().filter_map(|it| it.address.parse().ok());
    let mut backends: Vec<_> = backends
        .filter(is_machine)
        .map(|address| SocketAddrV4::new(address, object.spec.port))
        .collect();
    backends.sort_unstable();
    backends.dedup();
    let at = VirtualAddress { interface: network.interface.clone(), address };
    Some(Planned { at, port: object.spec.port, backends })
}

/// Returns the virtual addresses of an earlier process that no endpoint needs.
pub fn stale(
    held: Vec<VirtualAddress>,
    planned: &BTreeMap<String, Result<Planned, State>>,
) -> Vec<VirtualAddress> {
    let is_planned = |held: &VirtualAddress| planned.values().flatten().any(|it| it.at == *held);
    held.into_iter().filter(|held| !is_planned(held)).collect()
}

#[cfg(test)]
mod tests;
