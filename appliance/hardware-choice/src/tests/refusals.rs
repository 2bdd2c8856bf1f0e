//! Tests of the reasons why a Hardware is refused.

use serde_json::{Value, json};

use super::super::{PROVISIONED, choose};
use super::{host, hosts, owned, request, with};

/// Checks reason and sentence for a single Hardware `x` and a spec.
#[track_caller]
fn check(host: Value, spec: Value, reason: &str, sentence: &str) {
    let choice = choose(&request(spec), &hosts(vec![host]));
    let [verdict] = &choice.verdicts[..] else { panic!("{choice:?}") };
    assert_eq!((verdict.reason(), verdict.sentence()), (reason, format!("default/x {sentence}")));
    assert_eq!(choice.taken.is_some(), reason == "Usable");
    if choice.taken.is_none() {
        assert_eq!(choice.summary, verdict.sentence());
    }
}

#[test]
fn hardware_that_is_not_free_is_refused() {
    let free = |host, reason, sentence| check(host, json!({}), reason, sentence);
    let metadata = |field, value| with(host("x"), &["metadata", field], value);
    free(host("x"), "Usable", "can be used");
    let deleted = metadata("deletionTimestamp", json!("2026-11-20T10:00:00Z"));
    free(deleted, "Deleted", "is being deleted");
    let other = owned(host("x"), "other", "m");
    free(other, "InUse", "is in use by the machine other/m");
    let provisioned = metadata("annotations", json!({ PROVISIONED: "true" }));
    let sentence = "is provisioned without an owner: remove the annotation \
                    v1alpha1.tinkerbell.org/provisioned";
    free(provisioned, "Provisioned", sentence);
}

#[test]
fn hardware_without_a_needed_field_is_refused() {
    let spec = |path: &[&str], value, reason, sentence| {
        let path = [&["spec"], path].concat();
        check(with(host("x"), &path, value), json!({}), reason, sentence);
    };
    let (mac, ip) = (json!("52:54:00:77:00:01"), json!({ "address": "10.0.0.1" }));
    let dhcp = ["interfaces", "0", "dhcp"];
    spec(&["interfaces"], json!([]), "NoInterface", "has no interface");
    spec(&["interfaces"], json!([{}]), "NoMAC", NO_MAC);
    spec(&dhcp, json!({ "ip": ip }), "NoMAC", NO_MAC);
    // A lease provides the address.
    spec(&dhcp, json!({ "mac": mac }), "Usable", "can be used");
    spec(&["disks"], json!([]), "NoDisk", NO_DISK);
    spec(&["disks"], json!([{}]), "NoDisk", NO_DISK);
    // A hint is sufficient.
    spec(&["disks"], json!([{ "device": "serialNumber=S4EV" }]), "Usable", "can be used");
}

const NO_MAC: &str = "has no MAC address: set spec.interfaces[0].dhcp.mac";
const NO_DISK: &str = "has no disk: set spec.disks[0].device";

#[test]
fn hardware_that_differs_from_the_request_is_refused() {
    let selector = |selector: Value, reason, sentence| {
        check(host("x"), json!({ "hardwareSelector": selector }), reason, sentence);
    };
    let acme = json!({ "manufacturer": "Acme" });
    let sentence = "has another manufacturer (Intel(R) Client Systems)";
    selector(acme.clone(), "OtherManufacturer", sentence);
    selector(json!({ "plan": "OptiPlex" }), "OtherPlan", "has another plan (NUC8i5BEH)");
    let rack = json!({ "matchLabels": { "rack": "b" } });
    selector(rack.clone(), "OtherLabels", "lacks a label (rack)");
    let profile = json!({ "node-profile": "master" });
    selector(profile, "OtherLabels", "lacks a label (node-profile)");
    selector(json!({ "manufacturer": "", "plan": "" }), "Usable", "can be used");
    // Without a report, the manufacturer is unknown.
    let bare = with(host("x"), &["metadata", "annotations"], json!({}));
    let spec = json!({ "hardwareSelector": acme });
    check(bare, spec, "OtherManufacturer", "has another manufacturer (unknown)");
    let required = json!({ "hardwareAffinity": { "required": [{ "labelSelector": rack }] } });
    check(host("x"), required, "OtherAffinity", "does not match hardwareAffinity");
    let sentence = "is in another failure domain (box-1)";
    check(host("x"), json!({ "failureDomain": "rack-a" }), "OtherFailureDomain", sentence);
}
