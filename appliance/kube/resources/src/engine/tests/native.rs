//! Tests of Kubernetes' own kinds: clients can read all stored values; upstream's rules hold.

use serde_json::{Value, json};
use store::Key;

use super::super::{Patch, WriteOptions};
use super::{Bench, EVENTS, SECRETS, bench, reason};
use crate::StatusError;
use crate::status_error::Reason;

const LEASES: &str = "coordination.k8s.io/leases";
const NEWER_EVENTS: &str = "events.k8s.io/events";

impl Bench {
    async fn lease(&self, name: &str, spec: Value) -> Result<Value, StatusError> {
        self.create(LEASES, json!({ "metadata": { "name": name }, "spec": spec })).await
    }

    /// Stores an object that an earlier release accepted, without the present checks.
    async fn put(&self, resource: &str, name: &str, object: &Value) {
        let (key, value) = (Key::new(resource, "default", name), object.to_string().into_bytes());
        let written = self.engine.inner.store.write(move |txn| {
            txn.put(key, value);
            Ok::<_, store::Error>(())
        });
        written.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_value_that_no_typed_client_can_read_is_refused() {
    let bench = bench().await;
    for spec in [
        json!({ "renewTime": "garbage" }),
        json!({ "renewTime": "2024-01-01T00:00:00Z" }),
        json!({ "renewTime": "2024-01-01T00:00:00.123456789Z" }),
        json!({ "leaseDurationSeconds": 5_000_000_000_i64 }),
    ] {
        let refused = bench.lease("a", spec.clone()).await.unwrap_err();
        assert_eq!(refused.reason, Reason::BadRequest, "{spec}");
        let words = "Lease in version \"v1\" cannot be handled as a Lease: ";
        assert!(refused.message.starts_with(words), "{}", refused.message);
    }
    let made = bench.lease("a", json!({ "renewTime": "2024-01-01T02:00:00.5+02:00" })).await;
    assert_eq!(reason(made), Reason::BadRequest);
    let made = bench.lease("a", json!({ "renewTime": "2024-01-01T02:00:00.500000+02:00" })).await;
    assert_eq!(made.unwrap()["spec"]["renewTime"], "2024-01-01T00:00:00.500000Z");
    let patch = Patch::merge(json!({ "spec": { "renewTime": "garbage" } })).unwrap();
    let patched = bench.engine.patch(LEASES, "default", "a", patch, WriteOptions::default()).await;
    assert_eq!(reason(patched), Reason::Invalid);
}

#[tokio::test]
async fn what_an_earlier_release_let_in_is_mended_at_start() {
    let bench = bench().await;
    let meta = |name: &str| json!({ "name": name, "namespace": "default", "uid": name });
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": meta("a"), "spec": { "holderIdentity": "h", "leaseTransitions": 5e9,
            "acquireTime": "garbage", "renewTime": "2024-01-01T00:00:00Z" } });
    let event = json!({ "apiVersion": "v1", "kind": "Event", "metadata": meta("e"),
        "firstTimestamp": "garbage", "lastTimestamp": "2024-01-01T00:00:00Z", "count": 1 });
    bench.put(LEASES, "a", &lease).await;
    bench.put(EVENTS, "e", &event).await;
    bench.engine.ensure_permanent().await.unwrap();
    let read = bench.engine.get(LEASES, "default", "a").await.unwrap();
    let spec = json!({ "holderIdentity": "h", "renewTime": "2024-01-01T00:00:00.000000Z" });
    assert_eq!(read["spec"], spec);
    let read = bench.engine.get(EVENTS, "default", "e").await.unwrap();
    assert!(read.get("firstTimestamp").is_none(), "{read}");
    assert_eq!(read["lastTimestamp"], event["lastTimestamp"]);
    // A second start changes nothing.
    let before = bench.engine.revision();
    bench.engine.ensure_permanent().await.unwrap();
    assert_eq!(bench.engine.revision(), before);
}

#[tokio::test]
async fn a_secret_of_a_type_has_its_keys() {
    let bench = bench().await;
    let tls = json!({ "metadata": { "name": "a" }, "type": "kubernetes.io/tls",
        "stringData": { "tls.crt": "x" } });
    let refused = bench.create(SECRETS, tls.clone()).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
    assert_eq!(refused.details.causes[0].field, "data[tls.key]");
    // A Secret that an earlier release accepted can still be labelled.
    let stored = json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": "a", "namespace": "default", "uid": "u" } });
    bench.put(SECRETS, "a", &stored).await;
    let label = Patch::merge(json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
    let patched = bench.engine.patch(SECRETS, "default", "a", label, WriteOptions::default()).await;
    assert_eq!(patched.unwrap()["metadata"]["labels"]["a"], "b");
}

#[tokio::test]
async fn a_newer_event_has_a_time_and_a_known_type() {
    let bench = bench().await;
    let event = |kind: &str, time: &str| {
        json!({ "metadata": { "name": "a" }, "type": kind, "eventTime": time,
            "regarding": { "namespace": "default" } })
    };
    let time = "2026-11-20T10:00:00.000000Z";
    let mut timeless = event("Normal", time);
    timeless["eventTime"] = Value::Null;
    for (wrong, field) in [(timeless, "eventTime"), (event("Zap", time), "type")] {
        let refused = bench.create(NEWER_EVENTS, wrong).await.unwrap_err();
        assert_eq!(refused.details.causes[0].field, field);
    }
    bench.create(NEWER_EVENTS, event("Normal", time)).await.unwrap();
}

#[tokio::test]
async fn a_revision_of_zero_is_none() {
    let bench = bench().await;
    let zero = |kind: &str| {
        json!({ "metadata": { "name": "a", "resourceVersion": "0" },
        "data": { kind: "b" } })
    };
    let map = json!({ "metadata": { "name": "a" }, "data": {} });
    bench.create("/configmaps", map).await.unwrap();
    let options = WriteOptions::default;
    let put = bench.engine.update("/configmaps", "default", "a", zero("x"), options()).await;
    assert_eq!(put.unwrap()["data"], json!({ "x": "b" }));
    bench.hardware("a", json!({})).await;
    let object = json!({ "metadata": { "name": "a", "resourceVersion": "0" }, "spec": {} });
    let refused = bench.update(&object, options()).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
    assert!(refused.message.contains("must be specified for an update"), "{}", refused.message);
}

/// Checks that definitions of other releases, as installers and charts write them, change nothing.
#[tokio::test]
async fn a_definition_of_another_age_applies_with_a_warning() {
    let bench = bench().await;
    let name = "hardware.tinkerbell.org";
    let stored = bench.engine.get(crate::crds::RESOURCE, "", name).await.unwrap();
    let mut other = stored.clone();
    let version = &mut other["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["newer"] =
        json!({ "type": "string" });
    let mut next = version.clone();
    (next["name"], next["storage"]) = (json!("v1alpha2"), json!(false));
    other["spec"]["versions"].as_array_mut().unwrap().push(next);
    let options = WriteOptions::default();
    let put = bench.engine.update(crate::crds::RESOURCE, "", name, other, options.clone()).await;
    assert_eq!(put.unwrap()["spec"], stored["spec"]);
    let told = "hardware.tinkerbell.org keeps the definition of the box, without";
    assert_eq!(
        options.fields.warnings.take(),
        [
            format!("{told} field .spec.newer of version v1alpha1"),
            format!("{told} version v1alpha2"),
        ]
    );
}

#[tokio::test]
async fn a_finalizer_of_a_native_kind_has_a_domain() {
    let bench = bench().await;
    let lease =
        |finalizers: Value| json!({ "metadata": { "name": "f", "finalizers": finalizers } });
    let refused = bench.create(LEASES, lease(json!(["a.example.org/b", "bad"]))).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
    let words = "metadata.finalizers[1]: Invalid value: \"bad\": name is neither a standard";
    assert!(refused.message.contains(words), "{}", refused.message);
    let known = json!(["a.example.org/b", "kubernetes", "foregroundDeletion"]);
    bench.create(LEASES, lease(known)).await.unwrap();
    let add = Patch::merge(json!({ "metadata": { "finalizers": ["bad"] } })).unwrap();
    let patched = bench.engine.patch(LEASES, "default", "f", add, WriteOptions::default()).await;
    assert_eq!(reason(patched), Reason::Invalid);

    // An object that an earlier release accepted can be changed and deleted.
    let kept = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "g", "namespace": "default", "uid": "g", "finalizers": ["bad"] } });
    bench.put(LEASES, "g", &kept).await;
    for patch in [
        json!({ "metadata": { "labels": { "a": "b" } } }),
        json!({ "metadata": { "finalizers": null } }),
    ] {
        let patch = Patch::merge(patch).unwrap();
        bench.engine.patch(LEASES, "default", "g", patch, WriteOptions::default()).await.unwrap();
    }
}
