//! Tests of server-side apply, and of field ownership after every kind of write.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Bench, HARDWARE, RECORDS, SECRETS, bench, reason, revision};
use crate::engine::{Applied, Configuration, Part, Patch, WriteOptions};
use crate::status_error::{Reason, StatusError};

fn manager(name: &str) -> WriteOptions {
    WriteOptions { manager: Some(name.to_owned()), ..WriteOptions::default() }
}

fn wanted(object: Value, force: bool) -> Configuration {
    Configuration { object, force, uncreatable: None }
}

impl Bench {
    async fn apply(
        &self,
        name: &str,
        spec: Value,
        force: bool,
        options: WriteOptions,
    ) -> Result<Applied, StatusError> {
        let config = json!({
            "apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware",
            "metadata": { "name": name }, "spec": spec,
        });
        self.engine.apply(HARDWARE, "default", name, wanted(config, force), options).await
    }
}

/// Returns manager, operation, subresource and time of every `managedFields` entry.
fn entries(object: &Value) -> Vec<[&str; 4]> {
    let all = object["metadata"]["managedFields"].as_array();
    all.into_iter()
        .flatten()
        .map(|entry| {
            assert_eq!(entry["fieldsType"], "FieldsV1");
            ["manager", "operation", "subresource", "time"]
                .map(|field| entry[field].as_str().unwrap_or_default())
        })
        .collect()
}

#[tokio::test]
async fn every_write_says_who_owns_what() {
    let bench = bench().await;
    let created = bench.hardware("a", json!({ "l": "1" })).await;
    assert_eq!(entries(&created), [["tinbox", "Update", "", "2026-11-20T10:00:00Z"]]);
    bench.clock.advance(SignedDuration::from_secs(60));
    let patch = Patch::merge(json!({ "spec": { "userData": "x" } })).unwrap();
    let patched = bench.engine.patch(HARDWARE, "default", "a", patch, manager("me")).await.unwrap();
    assert_eq!(
        entries(&patched),
        [
            ["tinbox", "Update", "", "2026-11-20T10:00:00Z"],
            ["me", "Update", "", "2026-11-20T10:01:00Z"],
        ]
    );
    let mine = &patched["metadata"]["managedFields"][1]["fieldsV1"];
    assert_eq!(*mine, json!({ "f:spec": { "f:userData": {} } }));
    let status = json!({ "metadata": { "name": "a" }, "status": { "state": "Ready" } });
    let options = WriteOptions { part: Part::Status, ..manager("controller") };
    let patch = Patch::merge(status).unwrap();
    let written = bench.engine.patch(HARDWARE, "default", "a", patch, options).await.unwrap();
    let time = "2026-11-20T10:01:00Z";
    assert!(entries(&written).contains(&["controller", "Update", "status", time]));
    // A repeated identical write changes nothing, and the revision stays.
    let mut same = written.clone();
    same["metadata"]["managedFields"] = Value::Null;
    let again = bench.engine.update(HARDWARE, "default", "a", same, manager("me")).await.unwrap();
    assert_eq!(again, written);
}

#[tokio::test]
async fn an_apply_creates_changes_and_takes_back() {
    let bench = bench().await;
    let options = || manager("me");
    let first = bench.apply("a", json!({ "userData": "x", "agentID": "i" }), false, options());
    let first = first.await.unwrap();
    assert!(first.created && first.object["metadata"]["uid"].is_string());
    assert_eq!(entries(&first.object), [["me", "Apply", "", "2026-11-20T10:00:00Z"]]);
    bench.clock.advance(SignedDuration::from_secs(60));
    let again = bench.apply("a", json!({ "userData": "x", "agentID": "i" }), false, options());
    assert_eq!(again.await.unwrap(), Applied { created: false, ..first.clone() });
    let less = bench.apply("a", json!({ "userData": "y" }), false, options()).await.unwrap();
    assert_eq!(less.object["spec"], json!({ "userData": "y" }));
    assert_eq!(less.object["metadata"]["generation"], 2);
    assert!(revision(&less.object) > revision(&first.object));
    let version = json!({ "name": "c", "resourceVersion": "5" });
    let config =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": version, "type": "x/y" });
    let secret = bench.engine.apply(SECRETS, "default", "c", wanted(config, false), options());
    assert!(secret.await.unwrap().created);
    let refused = StatusError::bad_request("no");
    let config = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "d" } });
    let config = Configuration { uncreatable: Some(refused.clone()), ..wanted(config, true) };
    let secret = bench.engine.apply(SECRETS, "default", "d", config, options()).await;
    assert_eq!(secret.unwrap_err(), refused);
    let dry = WriteOptions { dry_run: true, ..options() };
    let would = bench.apply("b", json!({}), false, dry).await.unwrap();
    assert!(would.created);
    assert_eq!(reason(bench.get("b").await), Reason::NotFound);
}

#[tokio::test]
async fn conflicts_are_told_and_forced() {
    let bench = bench().await;
    bench.apply("a", json!({ "userData": "x" }), false, manager("one")).await.unwrap();
    let spec = json!({ "userData": "y" });
    let error = bench.apply("a", spec.clone(), false, manager("two")).await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    let sentence = "Apply failed with 1 conflict: conflict with \"one\": .spec.userData";
    assert_eq!(error.message, sentence);
    let status = error.to_value();
    let cause = json!({
        "reason": "FieldManagerConflict", "message": "conflict with \"one\"",
        "field": ".spec.userData",
    });
    assert_eq!(status["details"], json!({ "causes": [cause] }));
    let forced = bench.apply("a", spec, true, manager("two")).await.unwrap();
    assert_eq!(entries(&forced.object), [["two", "Apply", "", "2026-11-20T10:00:00Z"]]);
}

#[tokio::test]
async fn an_apply_of_status_leaves_the_rest() {
    let bench = bench().await;
    bench.apply("a", json!({ "userData": "x" }), false, manager("one")).await.unwrap();
    let config = json!({
        "apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware",
        "metadata": { "name": "a" }, "spec": { "userData": "no" }, "status": { "state": "Ready" },
    });
    let options = WriteOptions { part: Part::Status, ..manager("s") };
    let applied =
        bench.engine.apply(HARDWARE, "default", "a", wanted(config.clone(), true), options);
    let object = applied.await.unwrap().object;
    assert_eq!(object["spec"]["userData"], "x");
    assert_eq!(object["status"]["state"], "Ready");
    let time = "2026-11-20T10:00:00Z";
    assert!(entries(&object).contains(&["s", "Apply", "status", time]), "{object}");
    let options = WriteOptions { part: Part::Status, ..manager("s") };
    let missing = bench.engine.apply(HARDWARE, "default", "b", wanted(config, true), options).await;
    assert!(missing.is_err());
}

#[tokio::test]
async fn configurations_that_cannot_be_are_refused() {
    let bench = bench().await;
    let apply = async |config: Value| {
        let config = wanted(config, false);
        bench.engine.apply(SECRETS, "default", "a", config, manager("me")).await.unwrap_err()
    };
    let secret = |metadata: Value, more: Value| {
        let mut secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata });
        for (key, value) in more.as_object().into_iter().flatten() {
            secret[key] = value.clone();
        }
        secret
    };
    let error = apply(secret(json!({ "name": "b" }), json!({}))).await;
    assert_eq!(error.reason, Reason::BadRequest);
    let error = apply(secret(json!({}), json!({}))).await;
    assert!(error.message.ends_with("was undeterminable: name must be provided"), "{error}");
    let error = apply(Value::Null).await;
    assert_eq!(error.message, "invalid object type: /, Kind=");
    let error = apply(secret(json!({ "name": "a", "managedFields": [] }), json!({}))).await;
    assert_eq!(error.message, "metadata.managedFields must be nil");
    let error = apply(json!({ "apiVersion": "v2", "kind": "Secret" })).await;
    assert_eq!(error.message, "invalid object type: /v2, Kind=Secret");
    let error = apply(secret(json!({ "name": "a", "uid": "u" }), json!({}))).await;
    assert!(error.message.contains("uid mismatch"), "{}", error.message);
    let error = apply(secret(json!({ "name": "a" }), json!({ "unknown": 1 }))).await;
    assert_eq!(error.to_value()["code"], 500, "{error}");
    assert!(error.to_value().get("reason").is_none());
    let end = ".unknown: field not declared in schema";
    assert!(error.message.ends_with(end), "{error}");
}

#[tokio::test]
async fn records_are_owned_too() {
    let bench = bench().await;
    let record = json!({ "metadata": { "name": "r" }, "reason": "x", "message": "y" });
    let created = bench.engine.create(RECORDS, "default", record, manager("me")).await.unwrap();
    let fields = &created["metadata"]["managedFields"][0]["fieldsV1"];
    assert!(fields["f:reason"].is_object() && fields["f:message"].is_object(), "{fields}");
}
