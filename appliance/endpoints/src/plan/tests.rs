use api::network::control_plane_endpoint::ControlPlaneEndpoint;
use api::network::{NetworkPlan, NetworkSpec};
use jiff::Timestamp;
use platform::net::VirtualAddress;
use serde_json::json;

use super::{ENDPOINTS_MAX, plan, stale};
use crate::state::State;

fn network(interface: &str, address: &str) -> NetworkPlan {
    let spec = json!({ "interface": interface, "address": address, "gateway": "10.77.0.254" });
    serde_json::from_value::<NetworkSpec>(spec).unwrap().plan().unwrap()
}

fn object(address: &str, backends: &[&str]) -> ControlPlaneEndpoint {
    let backends: Vec<_> = backends.iter().map(|it| json!({ "address": it })).collect();
    serde_json::from_value(json!({
        "metadata": { "name": address },
        "spec": { "address": address, "port": 6443, "backends": backends,
            "clusterRef": { "namespace": "default", "name": "c" } },
    }))
    .unwrap()
}

fn at(interface: &str, address: &str) -> VirtualAddress {
    VirtualAddress { interface: interface.to_owned(), address: address.parse().unwrap() }
}

#[test]
fn an_endpoint_is_on_the_interface_of_its_network() {
    let networks = [network("eth1", "10.77.0.1/24")];
    let rows = [
        ("10.77.0.200", true),
        ("10.78.0.200", false),
        ("10.77.0.0", false),
        ("10.77.0.255", false),
        ("10.77.0.1", false),
        ("10.77.0.254", false),
        ("127.0.0.1", false),
        ("api.example.org", false),
        ("fd77::1", false),
    ];
    for (address, expected) in rows {
        let planned = plan(&[object(address, &[])], &networks).remove(address).unwrap();
        match planned {
            Ok(planned) => assert!(expected && planned.at == at("eth1", address), "{planned:?}"),
            Err(state) => assert!(!expected && state == State::NotInNetwork, "{address}"),
        }
    }
    let mut other = object("10.77.0.200", &[]);
    other.metadata.name = "second".to_owned();
    assert_eq!(plan(&[other], &networks)["second"], Err(State::NotInNetwork));
}

#[test]
fn only_machines_of_the_same_network_get_connections() {
    let mut networks = vec![network("eth1", "10.77.0.1/24")];
    let all = [
        "10.77.0.12",
        "10.77.0.11",
        "10.77.0.11",
        "10.77.0.1",
        "10.77.0.200",
        "10.77.0.254",
        "127.0.0.1",
        "169.254.1.1",
        "192.168.1.10",
        "",
        "fd77::1",
    ];
    let backends = |networks: &[NetworkPlan]| {
        let planned = plan(&[object("10.77.0.200", &all)], networks).remove("10.77.0.200");
        let backends = planned.unwrap().unwrap().backends;
        backends.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(backends(&networks), ["10.77.0.11:6443", "10.77.0.12:6443"]);
    let two = [object("10.77.0.200", &["10.77.0.201"]), object("10.77.0.201", &[])];
    let first = plan(&two, &networks).remove("10.77.0.200").unwrap().unwrap();
    assert_eq!(first.backends, [], "no loop of endpoints");
    networks.push(network("eth2", "192.168.1.1/24"));
    assert_eq!(backends(&networks).len(), 2, "a machine of another Network");
}

#[test]
fn the_number_is_limited_and_deleted_objects_do_not_count() {
    let networks = [network("eth1", "10.77.0.1/24")];
    let mut objects: Vec<_> =
        (0..=ENDPOINTS_MAX).map(|at| object(&format!("10.77.0.{}", 100 + at), &[])).collect();
    let refused = |objects: &[ControlPlaneEndpoint]| {
        plan(objects, &networks).into_values().filter(Result::is_err).count()
    };
    assert_eq!(refused(&objects), 1);
    objects[3].metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
    assert_eq!((refused(&objects), plan(&objects, &networks).len()), (0, ENDPOINTS_MAX));
}

#[test]
fn only_addresses_without_an_endpoint_are_stale() {
    let networks = [network("eth1", "10.77.0.1/24")];
    let planned = plan(&[object("10.77.0.200", &[]), object("10.99.0.1", &[])], &networks);
    let held = vec![
        at("eth1", "10.77.0.200"),
        at("eth0", "10.77.0.200"),
        at("eth1", "10.77.0.201"),
        at("eth1", "10.99.0.1"),
    ];
    assert_eq!(stale(held.clone(), &planned), held[1..]);
}
