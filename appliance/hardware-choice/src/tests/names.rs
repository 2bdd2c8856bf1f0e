//! Tests of requests that name their Hardware.

use serde_json::json;

use super::super::{NameError, PROVISIONED, RequestError, choose};
use super::{host, hosts, owned, request, with};

#[test]
fn a_named_hardware_is_taken_or_nothing() {
    let spec = |field: &str, value: &str| json!({ field: value, "failureDomain": "rack-b" });
    let far = |name: &str, namespace: &str| {
        with(host(name), &["metadata", "namespace"], json!(namespace))
    };
    let all = || vec![host("a"), far("a", "lab"), far("b", "lab"), far("c", "lab"), far("c", "x")];
    let rows = [
        // Selectors and failure domain do not apply: the machine may run already.
        ("hardwareName", "a", Ok("default/a")),
        ("hardwareName", "b", Ok("lab/b")),
        ("providerID", "tinkerbell://lab/a", Ok("lab/a")),
        ("providerID", "tinkerbell://b", Ok("lab/b")),
        ("hardwareName", "z", Err("spec.hardwareName names the Hardware z, which does not exist")),
        (
            "hardwareName",
            "c",
            Err("spec.hardwareName names 2 Hardware: c exists in several namespaces"),
        ),
        (
            "providerID",
            "tinkerbell://default/b",
            Err("spec.providerID names the Hardware default/b, which does not exist"),
        ),
        (
            "providerID",
            "metal3://a",
            Err("spec.providerID: expected tinkerbell://NAMESPACE/NAME, found \"metal3://a\""),
        ),
        (
            "providerID",
            "tinkerbell://a/b/c",
            Err("spec.providerID: expected tinkerbell://NAMESPACE/NAME, found \
                 \"tinkerbell://a/b/c\""),
        ),
    ];
    for (field, value, expected) in rows {
        let choice = choose(&request(spec(field, value)), &hosts(all()));
        let found = choice.taken.map(|key| key.to_string());
        assert_eq!(found.as_deref(), expected.ok(), "{value}");
        if let Err(message) = expected {
            assert_eq!(choice.summary, message);
            assert!(matches!(choice.error, Some(RequestError::Name(_))));
        }
    }
    let both = json!({ "providerID": "tinkerbell://lab/b", "hardwareName": "a" });
    let error = choose(&request(both), &hosts(all())).error;
    assert!(matches!(error, Some(RequestError::Name(NameError::Differ { .. }))));
    // A named Hardware of another machine is not taken.
    let used = owned(host("a"), "default", "other");
    let choice = choose(&request(json!({ "hardwareName": "a" })), &hosts(vec![used, host("b")]));
    assert_eq!(choice.taken, None);
    assert_eq!(choice.summary, "default/a is in use by the machine default/other");
}

#[test]
fn only_an_adoption_takes_a_provisioned_hardware() {
    let provisioned = with(host("a"), &["metadata", "annotations"], json!({ PROVISIONED: "true" }));
    let all = hosts(vec![provisioned]);
    let by_name = choose(&request(json!({ "hardwareName": "a" })), &all);
    assert_eq!((by_name.taken, by_name.verdicts[0].reason()), (None, "Provisioned"));
    let by_id = json!({ "hardwareName": "a", "providerID": "tinkerbell://default/a" });
    assert!(choose(&request(by_id), &all).taken.is_some());
}
