//! Tests both versions for every kind of interface; in `tests/metadata/cloud_init.rs`, cloud-init
//! renders them.

use serde_json::json;

use super::{v1, v2};
use crate::config::Addressing::{Dhcp, Static};
use crate::{Instance, Interface, Route};

fn interface(mac: &str, address: &str) -> Interface {
    Interface {
        address: (!address.is_empty()).then(|| address.parse().unwrap()),
        ..Interface::new(mac.parse().unwrap())
    }
}

fn full() -> Interface {
    Interface {
        gateway: Some("10.77.0.1".parse().unwrap()),
        name_servers: vec!["10.77.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
        domain: "lab.example".to_owned(),
        routes: vec![Route {
            to: "10.0.0.0/8".parse().unwrap(),
            via: "10.77.0.2".parse().unwrap(),
        }],
        ..interface("52:54:00:77:00:01", "10.77.3.11/22")
    }
}

fn machine(interfaces: Vec<Interface>) -> Instance {
    Instance { interfaces, ..Instance::default() }
}

#[test]
fn interfaces_ask_by_dhcp() {
    let bare = interface("52:54:00:77:00:02", "");
    let six = interface("52:54:00:77:00:03", "fd00::11/64");
    let machine = machine(vec![full(), bare, six]);
    let nic = |mac: &str, optional: bool, dhcp: [bool; 2]| {
        let mut nic = json!({ "match": { "macaddress": mac }, "dhcp4": dhcp[0], "dhcp6": dhcp[1] });
        if optional {
            nic["optional"] = true.into();
        }
        nic
    };
    let expected = json!({
        "version": 2,
        "ethernets": {
            "nic0": nic("52:54:00:77:00:01", false, [true, false]),
            "nic1": nic("52:54:00:77:00:02", true, [true, false]),
            "nic2": nic("52:54:00:77:00:03", true, [false, true]),
        },
    });
    assert_eq!(v2(&machine, Dhcp), expected);
    let nic = |name: &str, mac: &str, kind: &str| {
        let subnets = [json!({ "type": kind })];
        json!({ "type": "physical", "name": name, "mac_address": mac, "subnets": subnets })
    };
    let expected = json!({
        "version": 1,
        "config": [
            nic("nic0", "52:54:00:77:00:01", "dhcp4"),
            nic("nic1", "52:54:00:77:00:02", "dhcp4"),
            nic("nic2", "52:54:00:77:00:03", "dhcp6"),
        ],
    });
    assert_eq!(v1(&machine, Dhcp), expected);
}

#[test]
fn an_address_is_written_down_where_it_must_be_or_shall_be() {
    let undhcp = Interface { dhcp: false, ..full() };
    let named = Interface { name: "eno1".to_owned(), vlan: Some(7), ..full() };
    for (machine, addressing) in [(machine(vec![undhcp]), Dhcp), (machine(vec![full()]), Static)] {
        let routes = json!([
            { "to": "10.0.0.0/8", "via": "10.77.0.2" },
            { "to": "0.0.0.0/0", "via": "10.77.0.1" },
        ]);
        let expected = json!({
            "match": { "macaddress": "52:54:00:77:00:01" },
            "dhcp4": false,
            "dhcp6": false,
            "addresses": ["10.77.3.11/22"],
            "routes": routes,
            "nameservers": {
                "addresses": ["10.77.0.1", "fd00::1"],
                "search": ["lab.example"],
            },
        });
        assert_eq!(v2(&machine, addressing)["ethernets"]["nic0"], expected);
        let subnet = json!({
            "type": "static",
            "address": "10.77.3.11/22",
            "routes": [
                { "destination": "10.0.0.0/8", "gateway": "10.77.0.2" },
                { "destination": "0.0.0.0/0", "gateway": "10.77.0.1" },
            ],
            "dns_nameservers": ["10.77.0.1", "fd00::1"],
            "dns_search": ["lab.example"],
        });
        assert_eq!(v1(&machine, addressing)["config"][0]["subnets"], json!([subnet]));
    }
    let tagged = v2(&machine(vec![named.clone()]), Dhcp);
    let ethernet = json!({
        "match": { "macaddress": "52:54:00:77:00:01" },
        "set-name": "eno1", "dhcp4": false, "dhcp6": false,
    });
    assert_eq!(tagged["ethernets"]["nic0"], ethernet);
    let vlan = json!({ "nic0.7": { "id": 7, "link": "nic0", "dhcp4": true, "dhcp6": false } });
    assert_eq!(tagged["vlans"], vlan);
    let tagged = v1(&machine(vec![named]), Dhcp);
    assert_eq!(tagged["config"][0]["subnets"], json!(null));
    assert_eq!(tagged["config"][1]["name"], "eno1.7");
    assert_eq!(tagged["config"][1]["vlan_link"], "eno1");
}

#[test]
fn an_interface_with_nothing_is_left_alone() {
    let bare = Interface { dhcp: false, ..interface("52:54:00:77:00:01", "") };
    for addressing in [Dhcp, Static] {
        let two = &v2(&machine(vec![bare.clone()]), addressing)["ethernets"]["nic0"];
        assert_eq!((&two["dhcp4"], &two["addresses"]), (&json!(false), &json!(null)));
        let one = v1(&machine(vec![bare.clone()]), addressing);
        assert_eq!(one["config"][0]["subnets"], json!([]));
    }
    assert_eq!(v2(&machine(vec![]), Dhcp), json!({ "version": 2, "ethernets": {} }));
}

#[test]
fn a_recorded_default_route_stands_for_the_router() {
    let mut one = Interface { dhcp: false, ..full() };
    one.routes[0].to = "0.0.0.0/0".parse().unwrap();
    let routes = &v2(&machine(vec![one]), Dhcp)["ethernets"]["nic0"]["routes"];
    assert_eq!(*routes, json!([{ "to": "0.0.0.0/0", "via": "10.77.0.2" }]));
}

#[test]
fn only_names_that_linux_takes_are_given_and_each_once() {
    let named = |name: &str| Interface { name: name.to_owned(), ..full() };
    let all = ["eno1", "eno1", "lo", "a b", "../x", "sixteen-letters-", "", "e\u{e9}"].map(named);
    let all = v2(&machine(all.to_vec()), Dhcp);
    let given: Vec<_> = (0..8).map(|n| &all["ethernets"][format!("nic{n}")]["set-name"]).collect();
    assert_eq!(given[0], "eno1");
    assert!(given[1..].iter().all(|name| name.is_null()), "{given:?}");
}
