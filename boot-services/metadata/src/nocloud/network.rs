//! Network configuration of a machine for cloud-init, version 2 (netplan's) or 1.
//!
//! An interface is identified by its MAC address. Interfaces use DHCP, so the reservation stays the
//! only record of the address. Static addresses are written for interfaces without DHCP, and for
//! all interfaces with [`Addressing::Static`]. For an interface with a VLAN, the VLAN gets the
//! address.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::config::Addressing;
use crate::{Instance, Interface};

/// Maximum bytes of an interface name (`IFNAMSIZ` without the terminating zero).
const MAX_NAME: usize = 15;

/// Returns the configuration in version 2, for netplan, networkd, NetworkManager and Talos.
pub(crate) fn v2(instance: &Instance, addressing: Addressing) -> Value {
    let (mut ethernets, mut vlans) = (Map::new(), Map::new());
    let names = names(&instance.interfaces);
    for (number, (interface, name)) in instance.interfaces.iter().zip(names).enumerate() {
        let id = format!("nic{number}");
        let mut ethernet = json!({ "match": { "macaddress": interface.mac.to_string() } });
        if let Some(name) = name {
            ethernet["set-name"] = name.into();
        }
        if number > 0 {
            // A boot does not wait for a cable that may not be plugged in.
            ethernet["optional"] = true.into();
        }
        let layer = layer2(interface, addressing);
        if let Some(vlan) = interface.vlan {
            let mut tagged = json!({ "id": vlan, "link": id });
            extend(&mut tagged, layer);
            vlans.insert(format!("{id}.{vlan}"), tagged);
            extend(&mut ethernet, json!({ "dhcp4": false, "dhcp6": false }));
        } else {
            extend(&mut ethernet, layer);
        }
        ethernets.insert(id, ethernet);
    }
    let mut all = json!({ "version": 2, "ethernets": ethernets });
    if !vlans.is_empty() {
        all["vlans"] = vlans.into();
    }
    all
}

/// Returns the version 2 entry of an interface, or of a VLAN on the interface.
fn layer2(interface: &Interface, addressing: Addressing) -> Value {
    let Some(address) = written(interface, addressing) else {
        let ipv6 = interface.address.is_some_and(|address| address.addr().is_ipv6());
        return json!({ "dhcp4": interface.dhcp && !ipv6, "dhcp6": interface.dhcp && ipv6 });
    };
    let mut layer = json!({ "dhcp4": false, "dhcp6": false, "addresses": [address] });
    let routes = routes(interface).into_iter();
    let routes: Vec<Value> = routes.map(|(to, via)| json!({ "to": to, "via": via })).collect();
    if !routes.is_empty() {
        layer["routes"] = routes.into();
    }
    let mut servers = Map::new();
    if !interface.name_servers.is_empty() {
        servers.insert("addresses".to_owned(), json!(interface.name_servers));
    }
    if !interface.domain.is_empty() {
        servers.insert("search".to_owned(), json!([interface.domain]));
    }
    if !servers.is_empty() {
        layer["nameservers"] = servers.into();
    }
    layer
}

/// Returns the configuration in version 1, for systems older than netplan. Every interface in it
/// has a name.
pub(crate) fn v1(instance: &Instance, addressing: Addressing) -> Value {
    let mut config = Vec::new();
    let names = names(&instance.interfaces);
    for (number, (interface, name)) in instance.interfaces.iter().zip(names).enumerate() {
        let name = name.map_or_else(|| format!("nic{number}"), str::to_owned);
        let mut physical = json!({
            "type": "physical",
            "name": name,
            "mac_address": interface.mac.to_string(),
        });
        let subnets = subnets1(interface, addressing);
        let Some(vlan) = interface.vlan else {
            physical["subnets"] = subnets;
            config.push(physical);
            continue;
        };
        config.push(physical);
        config.push(json!({
            "type": "vlan",
            "name": format!("{name}.{vlan}"),
            "vlan_link": name,
            "vlan_id": vlan,
            "subnets": subnets,
        }));
    }
    json!({ "version": 1, "config": config })
}

fn subnets1(interface: &Interface, addressing: Addressing) -> Value {
    let ipv6 = interface.address.is_some_and(|address| address.addr().is_ipv6());
    let Some(address) = written(interface, addressing) else {
        let kind = if ipv6 { "dhcp6" } else { "dhcp4" };
        return if interface.dhcp { json!([{ "type": kind }]) } else { json!([]) };
    };
    let kind = if ipv6 { "static6" } else { "static" };
    let mut subnet = json!({ "type": kind, "address": address });
    let routes = routes(interface).into_iter();
    let routes: Vec<Value> =
        routes.map(|(to, via)| json!({ "destination": to, "gateway": via })).collect();
    if !routes.is_empty() {
        subnet["routes"] = routes.into();
    }
    if !interface.name_servers.is_empty() {
        subnet["dns_nameservers"] = json!(interface.name_servers);
    }
    if !interface.domain.is_empty() {
        subnet["dns_search"] = json!([interface.domain]);
    }
    json!([subnet])
}

/// Returns the static address with its prefix length. `None`: the interface uses DHCP, or has no
/// address.
fn written(interface: &Interface, addressing: Addressing) -> Option<String> {
    let uses_dhcp = interface.dhcp && addressing == Addressing::Dhcp;
    interface.address.filter(|_| !uses_dhcp).map(|address| address.to_string())
}

/// Returns all routes as destination and router. A recorded route to every destination is the
/// default route, and `gateway` is then ignored (RFC 3442).
fn routes(interface: &Interface) -> Vec<(String, IpAddr)> {
    let recorded = interface.routes.iter();
    let mut routes: Vec<_> = recorded.map(|it| (it.to.to_string(), it.via)).collect();
    let everywhere = interface.routes.iter().any(|route| route.to.prefix_len() == 0);
    if let Some(router) = interface.gateway.filter(|_| !everywhere) {
        let to = if router.is_ipv6() { "::/0" } else { "0.0.0.0/0" };
        routes.push((to.to_owned(), router));
    }
    routes
}

/// Returns the name of each interface; `None`: the system chooses it. A name that Linux does not
/// accept, or that another interface has, is ignored.
fn names(interfaces: &[Interface]) -> Vec<Option<&str>> {
    let mut taken = BTreeSet::new();
    let good = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain) && name != "lo"
    };
    let names = interfaces.iter().map(|interface| interface.name.as_str());
    names.map(|name| Some(name).filter(|name| good(name) && taken.insert(*name))).collect()
}

fn extend(object: &mut Value, with: Value) {
    if let (Value::Object(object), Value::Object(with)) = (object, with) {
        object.extend(with);
    }
}

#[cfg(test)]
mod tests;
