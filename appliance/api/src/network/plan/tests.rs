use std::net::Ipv4Addr;

use serde_json::json;

use crate::network::{Mode, NetworkSpec};

fn spec(value: serde_json::Value) -> NetworkSpec {
    serde_json::from_value(value).unwrap()
}

fn problems(value: serde_json::Value) -> Vec<String> {
    let problems = spec(value).plan().unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_pool_with_a_relayed_network() {
    let plan = spec(json!({
        "interface": "eth1",
        "address": "10.77.0.1/24",
        "mode": "pool",
        "pool": ["10.77.0.100-10.77.0.199", "10.77.0.210"],
        "gateway": "10.77.0.254",
        "nameServers": ["9.9.9.9"],
        "leaseSeconds": 600,
        "loaders": { "7": "ipxe.efi" },
        "relayed": [{ "subnet": "10.78.0.0/16", "pool": ["10.78.1.0-10.78.1.255"] }],
    }))
    .plan()
    .unwrap();
    assert_eq!((plan.mode, plan.enroll, plan.router_advertisements), (Mode::Pool, false, true));
    let [own, relayed] = plan.subnets.as_slice() else { panic!("{plan:?}") };
    assert_eq!(
        (own.to_string(), own.addresses(), own.lease_secs),
        ("10.77.0.0/24".into(), 101, 600)
    );
    assert_eq!(own.netmask(), Ipv4Addr::new(255, 255, 255, 0));
    assert!(own.contains([10, 77, 0, 9].into()) && !own.contains([10, 77, 1, 9].into()));
    assert_eq!((relayed.addresses(), relayed.lease_secs), (256, 3600));
    assert_eq!(plan.loaders[&7], "ipxe.efi");
}

#[test]
fn the_least_spec_is_off() {
    let plan = spec(json!({ "interface": "eth0", "address": "10.0.0.1/8" })).plan().unwrap();
    assert_eq!(plan.mode, Mode::Off);
    assert_eq!(plan.subnets.len(), 1);
}

#[test]
fn every_mistake_is_told_at_once() {
    let listed = problems(json!({
        "interface": "a b",
        "address": "10.77.0.1",
        "gateway": "here",
        "leaseSeconds": 5,
        "loaders": { "x": "y", "7": "" },
        "relayed": [
            { "subnet": "10.78.0.0/24", "pool": ["10.79.0.1-10.79.0.2", "10.78.0.9-10.78.0.3",
                "10.78.0.20-10.78.0.30", "10.78.0.30", "all"] },
            { "subnet": "10.78.0.0/24" },
        ],
    }));
    let expected = [
        r#"interface: "a b" is not a valid interface name"#,
        r#"address: "10.77.0.1" is not an address with prefix length /8 to /30"#,
        r#"gateway: "here" is not a valid IPv4 address"#,
        r#"leaseSeconds: "5" is not between 60 and 2592000 seconds (30 days)"#,
        r#"relayed[0].pool[0]: "10.79.0.1-10.79.0.2" is not inside 10.78.0.0/24"#,
        r#"relayed[0].pool[1]: "10.78.0.9-10.78.0.3" ends before it begins"#,
        r#"relayed[0].pool[3]: "10.78.0.30" overlaps an earlier range"#,
        r#"relayed[0].pool[4]: "all" is not a valid range such as 10.77.0.100-10.77.0.199"#,
        r#"relayed[1].subnet: "10.78.0.0/24" is listed twice"#,
        r#"loaders[7]: "" is not a file name of 1 to 127 bytes"#,
        r#"loaders[x]: "x" is not an architecture number (option 93)"#,
    ];
    assert_eq!(listed, expected);
}

#[test]
fn a_pool_needs_addresses_and_not_too_many() {
    let base = json!({ "interface": "eth1", "address": "10.77.0.1/24", "mode": "pool" });
    assert_eq!(problems(base), [r#"pool: "" must have addresses, because the mode is pool"#]);
    let listed = problems(json!({
        "interface": "eth1", "address": "10.0.0.1/8", "mode": "pool",
        "pool": ["10.0.0.0-10.255.255.255"],
    }));
    assert!(listed[0].contains("addresses in all pools, the limit is 131072"), "{listed:?}");
}
