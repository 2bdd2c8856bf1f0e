//! A patch of each of the four types, for an object of any form and for a stored object.

#![no_main]

use std::sync::LazyLock;

use resources::engine::Patch;
use axum::http::{Method, StatusCode};
use fuzz::{Api, Input, KNOWN, ask, block_on, request};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use stdx::json::is_within;

/// Maximum depth of an object after a patch.
const DEPTH_MAX: usize = 128;

const TYPES: [&[u8]; 4] = [
    b"application/json-patch+json",
    b"application/merge-patch+json",
    b"application/strategic-merge-patch+json",
    b"application/apply-patch+yaml",
];
/// Kinds whose lists merge in different ways.
const KINDS: [&str; 6] = ["Pod", "Deployment", "Service", "Node", "ServiceAccount", "CronJob"];

/// The stored objects: resource, name and content.
fn stored() -> [(&'static str, &'static str, Value); 4] {
    let owner = json!({ "apiVersion": "v1", "kind": "X", "name": "a", "uid": "1" });
    let service = json!({
        "metadata": { "name": "a", "finalizers": ["a/b"], "ownerReferences": [owner] },
        "spec": { "ports": [{ "port": 1, "name": "a" }, { "port": 2, "name": "b" }] },
    });
    let account = json!({
        "metadata": { "name": "a", "labels": { "a": "b" } },
        "secrets": [{ "name": "a" }, { "name": "b" }],
    });
    let map = json!({ "metadata": { "name": "a" }, "data": { "a": "b" } });
    let hardware = json!({
        "metadata": { "name": "a" },
        "spec": { "disks": [{ "device": "/dev/sda" }], "userData": "a" },
    });
    [
        ("/services", "api/v1/namespaces/default/services/a", service),
        ("/serviceaccounts", "api/v1/namespaces/default/serviceaccounts/a", account),
        ("/configmaps", "api/v1/namespaces/default/configmaps/a", map),
        (
            "tinkerbell.org/hardware",
            "apis/tinkerbell.org/v1alpha1/namespaces/default/hardware/a",
            hardware,
        ),
    ]
}

static API: LazyLock<Api> =
    LazyLock::new(|| Api::with(stored().map(|(resource, _, object)| (resource, object))));

fn by_itself(choice: u8, patch: Value, mut object: Value) {
    let kind = KINDS[usize::from(choice / 4) % KINDS.len()];
    if object.is_object() {
        object["kind"] = json!(kind);
    }
    let patch = match choice % 4 {
        0 => Patch::json(&patch),
        1 => Patch::merge(patch),
        _ => Patch::strategic(patch),
    };
    let Ok(patch) = patch else { return };
    let Ok(once) = patch.apply(object.clone()) else { return };
    assert!(is_within(&once, DEPTH_MAX));
    let again = patch.apply(once.clone());
    if matches!(patch, Patch::Merge(_)) {
        assert_eq!(again.expect("a merge fits"), once, "RFC 7386");
    }
    let nothing = Patch::Strategic(json!({}));
    if object.is_object() {
        assert_eq!(nothing.apply(object.clone()).expect("nothing fits"), object);
    }
}

fn stored_one(choice: u8, body: &[u8]) {
    let all = stored();
    let path = all[usize::from(choice / 4) % all.len()].1;
    let target = format!("{path}?dryRun=All&fieldManager=a&fieldValidation=Strict");
    let media = TYPES[usize::from(choice % 4)];
    let headers = [("authorization", b"Bearer t".as_slice()), ("content-type", media)];
    let request = request(Method::PATCH, target.as_bytes(), &headers, body, KNOWN);
    let (status, _) = block_on(ask(&API.router, request.expect("a request")));
    // Kubernetes answers 500 to an applied configuration that does not have the type of its kind.
    let is_unfit = choice % 4 == 3 && status == StatusCode::INTERNAL_SERVER_ERROR;
    assert!(!status.is_server_error() || is_unfit, "{status}");
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let choice = input.byte();
    if choice & 0x80 == 0 {
        return stored_one(choice, input.0);
    }
    let mut values = serde_json::Deserializer::from_slice(input.0).into_iter::<Value>();
    let mut value = || values.next().and_then(Result::ok).unwrap_or_default();
    let (patch, object) = (value(), value());
    by_itself(choice & 0x7f, patch, object);
});
