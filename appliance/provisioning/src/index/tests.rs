//! Tests of lookups in the index.

use api::meta::ObjectKey;
use api::tinkerbell::Hardware;
use jiff::{SignedDuration, Timestamp};

use super::Index;

fn hardware(name: &str, mac: &str, created_secs: i64) -> Hardware {
    let object = serde_json::json!({
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "interfaces": [{ "dhcp": { "mac": mac, "ip": { "address": "10.0.0.9" } } }] },
    });
    let mut hardware: Hardware = serde_json::from_value(object).unwrap();
    hardware.metadata.creation_timestamp = at(created_secs);
    hardware
}

fn at(secs: i64) -> Option<Timestamp> {
    Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(secs)).ok()
}

#[test]
fn the_older_of_two_claimants_keeps_the_address() {
    let index = Index::default();
    index.put_hardware(hardware("young", "52:54:00:00:00:01", 2));
    index.put_hardware(hardware("old", "52:54:00:00:00:01", 1));
    let mac = "52:54:00:00:00:01".parse().unwrap();
    assert_eq!(index.by_mac(mac).unwrap().metadata.name, "old");
    let key = index.by_mac(mac).unwrap().key();
    index.remove_hardware(&key);
    assert_eq!(index.by_mac(mac).unwrap().metadata.name, "young");
    assert!(index.by_address("10.0.0.9".parse().unwrap()).is_some());
    assert!(index.by_agent("52:54:00:00:00:01").is_some());
}

#[test]
fn the_address_of_an_endpoint_is_reserved() {
    let index = Index::default();
    let (key, address) = (ObjectKey::new("", "10.0.0.200"), "10.0.0.200".parse().unwrap());
    assert!(!index.is_reserved(address));
    index.put_endpoint(key.clone(), "10.0.0.200");
    assert!(index.is_reserved(address) && !index.is_reserved("10.0.0.201".parse().unwrap()));
    index.put_endpoint(key.clone(), "10.0.0.201");
    assert!(!index.is_reserved(address) && index.is_reserved("10.0.0.201".parse().unwrap()));
    index.remove_endpoint(&key);
    assert!(!index.is_reserved("10.0.0.201".parse().unwrap()));
}

#[test]
fn an_instance_id_is_of_one_machine_or_none() {
    let index = Index::default();
    let with_id = |name: &str, uid: &str, id: &str| {
        let mut hardware = hardware(name, "52:54:00:00:00:01", 1);
        hardware.metadata.uid = uid.to_owned();
        let metadata = serde_json::json!({ "instance": { "id": id } });
        hardware.spec.metadata = serde_json::from_value(metadata).unwrap();
        hardware
    };
    index.put_hardware(with_id("a", "1", "i-a"));
    index.put_hardware(with_id("b", "2", ""));
    let name = |id: &str| index.by_instance_id(id).map(|it| it.metadata.name.clone());
    assert_eq!(name("i-a").as_deref(), Some("a"));
    assert_eq!(name("2").as_deref(), Some("b"));
    assert_eq!((name("1"), name("")), (None, None));
    index.put_hardware(with_id("c", "3", "i-a"));
    assert_eq!(name("i-a"), None);
}
