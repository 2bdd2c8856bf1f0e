//! Tests that error messages are word for word those of a real API server for the same requests.

use serde_json::{Value, json};

use super::super::{Patch, WriteOptions};
use super::{HARDWARE, NAMESPACES, bench};
use crate::StatusError;
use crate::object::MAX_PATH_BYTES;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
     characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
     'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

fn told<T: std::fmt::Debug>(result: Result<T, StatusError>) -> (u16, String) {
    let error = result.unwrap_err();
    (error.reason.code(), error.message)
}

#[tokio::test]
async fn of_names_too_long_to_be_told() {
    let bench = bench().await;
    let create = async |object: Value| {
        bench.engine.create(HARDWARE, "default", object, WriteOptions::default()).await
    };
    let long = "a".repeat(MAX_PATH_BYTES);
    for object in [
        json!({ "metadata": { "name": "a" }, "spec": { long.as_str(): [0, 1] } }),
        json!({ "metadata": { "name": "a", "labels": { long.as_str(): "b" } } }),
        json!({ "metadata": { "name": "a" }, format!("{long}b"): 1 }),
    ] {
        let expected = "the path of a field is longer than 4096 bytes".to_owned();
        assert_eq!(told(create(object).await), (400, expected));
    }
}

#[tokio::test]
async fn of_names() {
    let bench = bench().await;
    let create = async |resource: &str, metadata: Value| {
        let namespace = if resource == NAMESPACES { "" } else { "default" };
        let object = json!({ "metadata": metadata });
        told(bench.engine.create(resource, namespace, object, WriteOptions::default()).await)
    };
    for (resource, metadata, expected) in [
        (
            HARDWARE,
            json!({ "name": "B_" }),
            format!(
                "Hardware.tinkerbell.org \"B_\" is invalid: metadata.name: Invalid value: \"B_\": \
                 {SUBDOMAIN}"
            ),
        ),
        (
            HARDWARE,
            json!({}),
            "Hardware.tinkerbell.org \"\" is invalid: metadata.name: Required value: name or \
             generateName is required"
                .to_owned(),
        ),
        (
            NAMESPACES,
            json!({ "name": "n.x" }),
            "Namespace \"n.x\" is invalid: metadata.name: Invalid value: \"n.x\": must not contain \
             dots"
                .to_owned(),
        ),
    ] {
        assert_eq!(create(resource, metadata).await, (422, expected));
    }
    let (code, message) = create(HARDWARE, json!({ "generateName": "Z_" })).await;
    assert_eq!(code, 422);
    let first =
        format!("[metadata.generateName: Invalid value: \"Z_\": {SUBDOMAIN}, metadata.name: ");
    assert!(message.contains(&first), "{message}");
}

#[tokio::test]
async fn of_metadata() {
    let bench = bench().await;
    bench.hardware("a", json!({})).await;
    let invalid = "Hardware.tinkerbell.org \"a\" is invalid: ";
    let name_part = "name part must consist of alphanumeric characters, '-', '_' or '.', and must \
        start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
        regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    for (metadata, expected) in [
        (
            json!({ "uid": "1" }),
            "metadata.uid: Invalid value: \"1\": field is immutable".to_owned(),
        ),
        (
            json!({ "deletionTimestamp": "2020-01-01T00:00:00Z", "generation": 77 }),
            "metadata.deletionTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": field is \
             immutable"
                .to_owned(),
        ),
        (
            json!({ "labels": { "-a": "b" } }),
            format!("metadata.labels: Invalid value: \"-a\": {name_part}"),
        ),
        (
            json!({ "labels": { "a": "-b" } }),
            "metadata.labels: Invalid value: \"-b\": a valid label must be an empty string or \
             consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        ),
        (
            json!({ "annotations": { "-a": "1" } }),
            format!("metadata.annotations: Invalid value: \"-a\": {name_part}"),
        ),
        (
            json!({ "ownerReferences": [{ "kind": "x" }] }),
            "[metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty, \
             metadata.ownerReferences.name: Invalid value: \"\": must not be empty, \
             metadata.ownerReferences.uid: Invalid value: \"\": must not be empty]"
                .to_owned(),
        ),
    ] {
        let answer = bench.merge("a", json!({ "metadata": metadata })).await;
        assert_eq!(told(answer), (422, format!("{invalid}{expected}")));
    }
    // A client's values for fields that the server sets are ignored silently.
    let kept = json!({ "metadata": {
        "generation": 77, "creationTimestamp": "2020-01-01T00:00:00Z", "selfLink": "x",
    } });
    let before = bench.get("a").await.unwrap();
    assert_eq!(bench.merge("a", kept).await.unwrap(), before);
    // After the deletion started, no finalizer can be added, and the deletion cannot be undone.
    let held = json!({ "metadata": { "finalizers": ["a/b"] } });
    bench.merge("a", held).await.unwrap();
    let options = super::super::DeleteOptions::default();
    bench.engine.delete(HARDWARE, "default", "a", options).await.unwrap();
    let added = json!({ "metadata": { "finalizers": ["a/b", "x.y/z"] } });
    let why = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
        being deleted, found new finalizers []string{\"x.y/z\"}";
    assert_eq!(told(bench.merge("a", added).await), (422, format!("{invalid}{why}")));
    for back in [json!(null), json!("2020-01-01T00:00:00Z")] {
        let back = json!({ "metadata": { "deletionTimestamp": back } });
        let kept = bench.merge("a", back).await.unwrap();
        assert!(kept["metadata"]["deletionTimestamp"].as_str().unwrap().starts_with("2026-"));
    }
}

#[tokio::test]
async fn of_revisions_and_dry_runs() {
    let bench = bench().await;
    let object = bench.hardware("a", json!({})).await;
    let mut stale = object.clone();
    stale["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let why = "hardware.tinkerbell.org \"a\" is invalid: metadata.resourceVersion: Invalid value: \
        0: must be specified for an update";
    assert_eq!(told(bench.update(&stale, WriteOptions::default()).await), (422, why.to_owned()));
    let patch = || Patch::merge(json!({ "spec": { "agentID": "x" } })).unwrap();
    let dry = || WriteOptions { dry_run: true, ..WriteOptions::default() };
    let patched = bench.engine.patch(HARDWARE, "default", "a", patch(), dry()).await.unwrap();
    assert_eq!(patched["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);
    assert_eq!(
        (&patched["spec"]["agentID"], &patched["metadata"]["generation"]),
        (&json!("x"), &json!(2))
    );
    // As upstream, which refuses a resourceVersion only when it stores the object.
    let new = json!({ "metadata": { "name": "b", "resourceVersion": "7" } });
    let refused = bench.create(HARDWARE, new.clone()).await.unwrap_err();
    assert_eq!(refused.message, "resourceVersion should not be set on objects to be created");
    let made = bench.engine.create(HARDWARE, "default", new, dry()).await.unwrap();
    assert!(
        made["metadata"].get("resourceVersion").is_none() && made["metadata"]["uid"].is_string()
    );
}
