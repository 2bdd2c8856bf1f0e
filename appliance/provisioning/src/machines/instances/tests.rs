//! Tests of the conversion of a Hardware to an instance.

use std::time::Duration;

use api::tinkerbell::Hardware;
use jiff::{SignedDuration, Timestamp};
use metadata::Provisioning;
use serde_json::json;

use super::{End, boots_from_network, instance, provisioning};

fn hardware() -> Hardware {
    let nic = |number: u8, address: &str, netmask: &str| {
        json!({
            "mac": format!("52:54:00:77:00:0{number}"),
            "hostname": format!("host-{number}"),
            "ip": { "address": address, "netmask": netmask, "gateway": "10.0.0.1" },
            "vlan_id": "4095",
        })
    };
    let mut first = nic(1, "10.0.0.11", "255.255.252.0");
    first["vlan_id"] = "7".into();
    first["iface_name"] = "eno1".into();
    first["domain_name"] = "lab".into();
    first["name_servers"] = json!(["10.0.0.1", "none"]);
    first["classless_static_routes"] =
        json!([{ "destination_descriptor": "10.0.0.0/8", "router": "10.0.0.2" }]);
    let object = json!({
        "metadata": {
            "name": "nuc-1", "namespace": "rack", "uid": "c0ffee",
            "annotations": { "meta-data.tinbox.dev/role": "storage", "other": "x" },
        },
        "spec": {
            "interfaces": [
                { "dhcp": first },
                { "dhcp": nic(2, "10.1.0.11", "255.0.255.0"), "disableDhcp": true },
                { "dhcp": nic(3, "fd00::11", "64") },
                { "dhcp": { "hostname": "no address at all" } },
            ],
            "metadata": { "instance": { "ips": [
                { "family": 4, "public": true, "address": "" },
                { "family": 4, "public": true, "address": "203.0.113.9" },
                { "family": 6, "address": "2001:DB8::9" },
            ] } },
        },
    });
    serde_json::from_value(object).unwrap()
}

#[test]
fn what_the_record_says_is_passed_on_and_nothing_invented() {
    let one = instance(&hardware(), Some("10.0.0.11".parse().unwrap()));
    assert_eq!((one.id.as_str(), one.hostname.as_str()), ("", ""));
    assert_eq!((one.name.as_str(), one.uuid.as_str()), ("nuc-1", "c0ffee"));
    assert_eq!(one.provider_id, "tinkerbell://rack/nuc-1");
    assert_eq!(one.extra, [("role".to_owned(), "storage".to_owned())].into());
    assert_eq!((one.public_ipv4.as_str(), one.local_ipv4.as_str()), ("203.0.113.9", ""));
    assert_eq!(one.public_ipv6, "2001:DB8::9");
    let [first, second, third] = &one.interfaces[..] else { panic!("{:?}", one.interfaces) };
    assert_eq!(first.address.unwrap().to_string(), "10.0.0.11/22");
    assert_eq!((first.vlan, first.name.as_str(), first.dhcp), (Some(7), "eno1", true));
    assert_eq!((first.name_servers.len(), first.routes.len()), (1, 1));
    assert_eq!((second.address, second.vlan, second.dhcp), (None, None, false));
    assert_eq!(third.address.unwrap().to_string(), "fd00::11/64");
}

#[test]
fn the_interface_that_asks_comes_first() {
    let hosts = |asked: Option<&str>| -> Vec<String> {
        let machine = instance(&hardware(), asked.map(|address| address.parse().unwrap()));
        machine.interfaces.into_iter().map(|it| it.hostname).collect()
    };
    assert_eq!(hosts(Some("fd00::11")), ["host-3", "host-1", "host-2"]);
    assert_eq!(hosts(Some("10.0.0.11")), ["host-1", "host-2", "host-3"]);
    assert_eq!(hosts(None), ["host-1", "host-2", "host-3"]);
}

#[test]
fn provisioning_is_under_way_or_ended_so_long_ago() {
    let now = Timestamp::UNIX_EPOCH;
    let at = |secs: i64| {
        Some(End { time: now.checked_add(SignedDuration::from_secs(secs)).unwrap(), seen: None })
    };
    let ended = |secs: u64| Provisioning::Ended { ago: Duration::from_secs(secs) };
    assert_eq!(provisioning(true, at(-5), now), Provisioning::Underway);
    assert_eq!(provisioning(false, at(-5), now), ended(5));
    assert_eq!(provisioning(false, at(5), now), ended(0));
    assert_eq!(provisioning(false, None, now), Provisioning::Unrecorded);
    // The clock was set forward or back by years after the end.
    let seen = tokio::time::Instant::now();
    for secs in [-1_000_000_000, 1_000_000_000] {
        let end = at(secs).map(|end| End { seen: Some(seen), ..end });
        let Provisioning::Ended { ago } = provisioning(false, end, now) else { panic!("{end:?}") };
        assert!(ago <= seen.elapsed());
    }
}

#[test]
fn a_system_that_boots_from_the_network_has_no_window() {
    let with = |allowed: bool, ipxe: serde_json::Value| {
        let netboot = json!({ "allowPXE": allowed, "ipxe": ipxe });
        let interface = json!({ "dhcp": { "mac": "52:54:00:77:00:01" }, "netboot": netboot });
        let object = json!({ "metadata": {}, "spec": { "interfaces": [interface] } });
        boots_from_network(&serde_json::from_value(object).unwrap())
    };
    assert!(with(true, json!({ "contents": "#!ipxe" })));
    assert!(with(true, json!({ "url": "http://10.77.0.1/talos.ipxe" })));
    assert!(!with(true, json!({ "binary": "ipxe.efi" })));
    assert!(!with(false, json!({ "contents": "#!ipxe" })));
    assert!(!boots_from_network(&hardware()));
}
