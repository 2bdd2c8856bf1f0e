//! Tests of all kinds: each kind can be served, and its schema accepts only valid objects.

use serde_json::{Value, json};

use super::{conformance, registry};

#[test]
fn every_definition_can_be_served() {
    for registry in [registry().unwrap(), conformance().unwrap()] {
        for definition in registry.all() {
            let found = registry.by_id(&definition.address()).unwrap();
            assert_eq!(found.version, definition.version, "{definition:?}");
            assert!(registry.by_id(&definition.id()).is_some(), "{definition:?}");
            let named = definition.columns.iter().filter(|column| column.format == "name");
            assert_eq!(named.count(), 1, "{definition:?}");
        }
        assert_eq!(registry.namespaces().unwrap().kind, "Namespace");
    }
    assert!(registry().unwrap().by_id("/pods").is_none());
}

#[test]
fn machines_are_those_of_a_cluster() {
    let registry = registry().unwrap();
    let machines = registry.all().iter().filter(|one| one.plural == "machines");
    let machines: Vec<String> = machines.map(|one| one.api_version()).collect();
    let expected =
        ["cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1alpha4", "bmc.tinkerbell.org/v1alpha1"];
    assert_eq!(machines, expected);
}

/// Returns the mistakes that the schema of a kind reports about an object.
fn told(address: &str, object: &Value) -> Vec<String> {
    let registry = registry().unwrap();
    let schema = registry.by_id(address).unwrap().schema.clone().unwrap();
    let mut object = object.clone();
    let mut told = schema.prune(&mut object);
    schema.default(&mut object);
    told.extend(schema.validate(&object, None).into_iter().map(|error| error.field));
    told
}

#[track_caller]
fn check(rows: &[(&str, Value, &[&str])]) {
    for (address, object, expected) in rows {
        assert_eq!(told(address, object), *expected, "{object}");
    }
}

#[test]
fn hardware_refuses_what_upstream_refuses() {
    const HARDWARE: &str = "tinkerbell.org/hardware";
    let of = |dhcp: Value| json!({ "spec": { "interfaces": [{ "dhcp": dhcp }] } });
    check(&[
        (HARDWARE, of(json!({ "mac": null, "vlan_id": null, "boot_file_name": null })), &[]),
        (HARDWARE, of(json!({ "mac": "52:54:00:12:34:56", "vlan_id": "4096" })), &[]),
        (HARDWARE, of(json!({ "mac": "52:54:00:12:34:5G" })), &["spec.interfaces[0].dhcp.mac"]),
        (HARDWARE, of(json!({ "mac": "52-54-00-12-34-56" })), &["spec.interfaces[0].dhcp.mac"]),
        (HARDWARE, of(json!({ "vlan_id": "4097" })), &["spec.interfaces[0].dhcp.vlan_id"]),
        (HARDWARE, json!({ "spec": { "interfaces": {} } }), &["spec.interfaces", "<nil>"]),
        (HARDWARE, json!({ "status": { "state": 1 } }), &["status.state", "<nil>"]),
        (HARDWARE, json!({ "spec": { "disk": [] } }), &["unknown field \"spec.disk\""]),
    ]);
}

#[test]
fn rule_sets_are_checked_when_they_are_written() {
    let registry = registry().unwrap();
    let sets = registry.by_id("tinkerbell.org/workflowrulesets").unwrap();
    let validate = sets.validate.clone().unwrap();
    let rules = json!([r#"{"chassis": {"serial": [{"exists": true}]}}"#, "serial"]);
    let told = validate(&json!({ "spec": { "rules": rules } }), None);
    let told: Vec<String> = told.into_iter().map(|error| error.field).collect();
    assert_eq!(told, ["spec.rules[1]"]);
}

#[test]
fn kinds_refuse_what_upstream_refuses() {
    let connection = json!({ "host": "10.0.0.2", "port": 623, "insecureTLS": true,
        "authSecretRef": { "name": "a", "namespace": "b" } });
    let job = |tasks: Value| {
        let machine = json!({ "name": "a", "namespace": "b" });
        json!({ "spec": { "machineRef": machine, "tasks": tasks } })
    };
    check(&[
        ("tinkerbell.org/templates", json!({ "spec": { "data": "version: 1" } }), &[]),
        ("tinkerbell.org/templates", json!({ "spec": { "data": {} } }), &["spec.data"]),
        (
            "tinkerbell.org/workflows",
            json!({ "spec": { "bootOptions": { "bootMode": "usb" } } }),
            &["spec.bootOptions.bootMode"],
        ),
        ("bmc.tinkerbell.org/machines", json!({ "spec": { "connection": connection } }), &[]),
        ("bmc.tinkerbell.org/machines", json!({ "spec": {} }), &["spec.connection"]),
        ("bmc.tinkerbell.org/jobs", job(json!([{ "powerAction": "off" }])), &[]),
        ("bmc.tinkerbell.org/jobs", job(json!([])), &["spec.tasks"]),
        (
            "bmc.tinkerbell.org/jobs",
            job(json!([{ "powerAction": "explode" }])),
            &["spec.tasks[0].powerAction"],
        ),
    ]);
}

#[test]
fn objects_of_the_older_cluster_api_are_kept_as_they_come() {
    let machine = json!({ "spec": { "hardwareSelector": { "manufacturer": "Intel", "plan": "NUC" },
        "osImage": "ubuntu-20.04", "userDataSecret": { "name": "nuc-userdata" } } });
    let template = json!({ "spec": { "template": machine } });
    let capi = json!({ "spec": { "clusterName": "a", "version": "v1.21.1", "bootstrap": {
        "configRef": { "kind": "KubeadmConfig" } }, "infrastructureRef": { "name": "a" } } });
    let endpoint = json!({ "spec": { "controlPlaneEndpoint": { "host": "a", "port": 6443 } } });
    const GROUP: &str = "infrastructure.cluster.x-k8s.io";
    let at = |plural: &str, version: &str| format!("{GROUP}/{plural}@{version}");
    check(&[
        (&at("tinkerbellmachines", "v1alpha4"), machine, &[]),
        (&at("tinkerbellmachinetemplates", "v1alpha4"), template, &[]),
        (&at("tinkerbellclusters", "v1alpha4"), endpoint.clone(), &[]),
        (&at("tinkerbellclusters", "v1beta1"), endpoint, &[]),
        ("cluster.x-k8s.io/machines@v1alpha4", capi, &[]),
    ]);
}

#[test]
fn events_of_both_groups_are_the_same() {
    let registry = registry().unwrap();
    let newer = registry.by_id("events.k8s.io/events").unwrap();
    assert_eq!(newer.id(), "/events");
    let stored = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "a" }, "message": "on",
        "involvedObject": { "name": "nuc-1" }, "source": { "component": "bmc" }, "count": 2,
        "firstTimestamp": "2026-11-20T10:00:00Z", "reportingComponent": "x", "reason": "On",
    });
    let mut served = stored.clone();
    newer.to_served(&mut served);
    assert_eq!(
        served,
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "a" },
            "note": "on", "regarding": { "name": "nuc-1" }, "reason": "On", "deprecatedCount": 2,
            "deprecatedSource": { "component": "bmc" }, "reportingController": "x",
            "deprecatedFirstTimestamp": "2026-11-20T10:00:00Z", "eventTime": null,
        })
    );
    newer.to_stored(&mut served);
    assert_eq!(served, stored);
}
