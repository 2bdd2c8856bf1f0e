//! Tests with hand-written bodies. `tests/peers` compares bodies with Kubernetes' own encoder.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{decode, encode};
use crate::wire::put_bytes;
use crate::{Error, MAX_DEPTH, MAX_VALUES, catalog};

fn wrapped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut meta = Vec::new();
    put_bytes(&mut meta, 1, api_version.as_bytes());
    put_bytes(&mut meta, 2, kind.as_bytes());
    let mut body = b"k8s\0".to_vec();
    put_bytes(&mut body, 1, &meta);
    put_bytes(&mut body, 2, raw);
    body
}

#[test]
fn a_secret_there_and_back() {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "bmc",
            "labels": { "rack": "a" },
            "creationTimestamp": "2026-01-02T03:04:05Z",
        },
        "data": { "password": "aHVudGVyMg==", "empty": "" },
        "immutable": false,
        "type": "Opaque",
    });
    assert_eq!(decode(&encode(&secret).unwrap(), ("", "")).unwrap(), secret);
}

#[test]
fn what_is_not_there_is_shown_as_go_shows_it() {
    let role = decode(&wrapped("rbac.authorization.k8s.io/v1", "Role", &[]), ("", "")).unwrap();
    assert_eq!(role["metadata"], json!({}));
    assert_eq!(role["rules"], Value::Null);
    let event = decode(&wrapped("v1", "Event", &[]), ("", "")).unwrap();
    assert_eq!(event["involvedObject"], json!({}));
    assert_eq!((&event["firstTimestamp"], &event["eventTime"]), (&Value::Null, &Value::Null));
    assert_eq!(event["reportingComponent"], "");
    assert!(event.get("message").is_none());
}

#[test]
fn a_body_that_names_no_kind_is_of_the_expected_one() {
    let body = wrapped("", "", &[]);
    assert_eq!(decode(&body, ("v1", "ConfigMap")).unwrap()["kind"], "ConfigMap");
    let why = decode(&body, ("", "")).unwrap_err();
    assert!(matches!(why, Error::UnknownKind { .. }), "{why}");
    let options = wrapped("coordination.k8s.io/v1", "DeleteOptions", &[]);
    assert_eq!(decode(&options, ("", "")).unwrap()["kind"], "DeleteOptions");
}

#[test]
fn lists() {
    let list = json!({
        "apiVersion": "v1",
        "kind": "ConfigMapList",
        "metadata": { "resourceVersion": "7" },
        "items": [{ "metadata": { "name": "a" }, "data": { "k": "v" } }],
    });
    let body = encode(&list).unwrap();
    assert!(body.windows(13).any(|part| part == b"ConfigMapList"));
    let hardware = json!({ "apiVersion": "tinkerbell.org/v1alpha1", "kind": "HardwareList" });
    assert!(matches!(encode(&hardware), Err(Error::UnknownKind { .. })));
}

#[test]
fn depth_and_number_are_bounded() {
    // Field 28 of a schema is `not`, again a schema; the outermost schemas are in the definition.
    let mut nested = Vec::new();
    for _ in 0..2 * MAX_DEPTH {
        let mut outer = Vec::new();
        put_bytes(&mut outer, 28, &nested);
        nested = outer;
    }
    for number in [1, 4, 7, 2] {
        let mut outer = Vec::new();
        put_bytes(&mut outer, number, &nested);
        nested = outer;
    }
    let body = wrapped("apiextensions.k8s.io/v1", "CustomResourceDefinition", &nested);
    let why = decode(&body, ("", "")).unwrap_err();
    assert_eq!(why, Error::TooMuch { what: "levels of messages", limit: MAX_DEPTH });
    // Two bytes of a rule become an object of several fields.
    let rules = [0x12, 0x00].repeat(MAX_VALUES);
    let why = decode(&wrapped("rbac.authorization.k8s.io/v1", "Role", &rules), ("", ""));
    assert_eq!(why.unwrap_err(), Error::TooMuch { what: "values", limit: MAX_VALUES });
}

#[test]
fn what_is_no_body_is_refused() {
    for body in [&b""[..], b"k8s", b"{}", b"k8s\0\x0a", b"k8s\0\x12\xff", b"k8s\0\x08\x01"] {
        assert!(decode(body, ("v1", "Secret")).is_err(), "{body:?}");
    }
    // An empty message in place of a boolean.
    assert!(decode(&wrapped("v1", "ServiceAccount", &[0x22, 0x00]), ("", "")).is_err());
    // A number in place of a name, a number in place of a map entry, and duplicate metadata.
    for raw in [&[0x0a, 0x02, 0x08, 0x01][..], &[0x10, 0x01], &[0x0a, 0x00, 0x0a, 0x00]] {
        assert!(decode(&wrapped("v1", "Secret", raw), ("", "")).is_err(), "{raw:?}");
    }
}

fn any_kind() -> impl Strategy<Value = (&'static str, &'static str)> {
    let mut kinds: Vec<_> = catalog().kinds().map(|(version, kind, _)| (version, kind)).collect();
    kinds.sort_unstable();
    prop::sample::select(kinds)
}

proptest! {
    #[test]
    fn no_bytes_are_a_panic(
        (version, kind) in any_kind(),
        raw in prop::collection::vec(0_u8.., 0..200),
    ) {
        let _ = decode(&raw, (version, kind));
        if let Ok(object) = decode(&wrapped(version, kind, &raw), ("", "")) {
            let _ = encode(&object);
        }
    }

    #[test]
    fn what_was_decoded_once_stays_what_it_is(
        (version, kind) in any_kind(),
        fields in prop::collection::vec((1_u32..16, prop::collection::vec(0_u8..32, 0..40)), 0..6),
    ) {
        let mut raw = Vec::new();
        for (number, bytes) in &fields {
            put_bytes(&mut raw, *number, bytes);
        }
        if let Ok(mut object) = decode(&wrapped(version, kind, &raw), ("", "")) {
            let mut again = decode(&encode(&object).unwrap(), ("", "")).unwrap();
            // Go's zero time reads as null, which means unset.
            stdx::json::drop_nulls(&mut object);
            stdx::json::drop_nulls(&mut again);
            prop_assert_eq!(again, object);
        }
    }
}
