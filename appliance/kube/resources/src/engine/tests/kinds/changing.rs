//! Tests of the effects of a changed or removed definition on clients of the kind.

use serde_json::{Value, json};
use store::Key;

use super::super::super::{
    DeleteOptions, Engine, EventKind, Part, Patch, WatchEvent, WatchOptions, WriteOptions,
};
use super::super::{HARDWARE, bench, next, reason};
use super::{CRDS, PATIENCE, WIDGETS, condition, crd, widget_spec};
use crate::crds;
use crate::status_error::Reason;

const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
const NAME: &str = "widgets.example.net";

/// Writes a definition directly to the store, without a reload in the engine; `None` removes it.
pub(super) async fn store(engine: &Engine, name: &str, crd: Option<&Value>) {
    let key = Key::new(CRDS, "", name);
    let value = crd.map(|crd| crd.to_string().into_bytes());
    let written = engine.inner.store.write(move |txn| {
        match value {
            Some(value) => drop(txn.put(key, value)),
            None => drop(txn.delete(&key)?),
        }
        Ok::<_, store::Error>(())
    });
    written.await.unwrap().unwrap();
}

#[tokio::test]
async fn nothing_is_written_by_a_definition_that_has_changed() {
    let bench = bench().await;
    let mut made = bench.define(crd("widgets", "Widget", widget_spec())).await.unwrap();
    bench.widget("a", json!({ "size": 1 })).await.unwrap();
    let color = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color/default";
    *made.pointer_mut(color).unwrap() = json!("blue");
    store(&bench.engine, NAME, Some(&made)).await;
    let patch = || {
        let patch = Patch::merge(json!({ "spec": { "size": 2 } })).unwrap();
        bench.engine.patch(WIDGETS, "default", "a", patch, WriteOptions::default())
    };
    let refused = bench.widget("b", json!({ "size": 1 })).await.unwrap_err();
    assert_eq!((refused.reason, refused.details.retry_after_seconds), (Reason::TooManyRequests, 1));
    assert_eq!(reason(patch().await), Reason::TooManyRequests);
    // A client that retries finds the new definition served.
    bench.engine.ensure_permanent().await.unwrap();
    assert_eq!(bench.widget("b", json!({ "size": 1 })).await.unwrap()["spec"]["color"], "blue");
    assert_eq!(patch().await.unwrap()["spec"], json!({ "size": 2, "color": "red" }));
    store(&bench.engine, NAME, None).await;
    assert_eq!(reason(bench.widget("c", json!({ "size": 1 })).await), Reason::NotFound);
    assert_eq!(reason(patch().await), Reason::NotFound);
}

#[tokio::test]
async fn watches_end_with_what_they_watch() {
    let bench = bench().await;
    let made = bench.define(crd("widgets", "Widget", widget_spec())).await.unwrap();
    bench.widget("a", json!({ "size": 1 })).await.unwrap();
    let engine = &bench.engine;
    let watch =
        async |resource: &str| engine.watch(resource, None, WatchOptions::default()).await.unwrap();
    let told = |event: WatchEvent| {
        (event.kind, event.object["metadata"]["name"].as_str().unwrap().to_owned())
    };
    let mut other = watch(HARDWARE).await;
    let mut open = watch(WIDGETS).await;
    assert_eq!(told(next(&mut open).await.unwrap()), (EventKind::Added, "a".to_owned()));
    // Changes that do not affect the kind are ignored.
    let patch = |patch: Value| {
        engine.patch(CRDS, "", NAME, Patch::merge(patch).unwrap(), WriteOptions::default())
    };
    patch(json!({ "metadata": { "labels": { "a": "b" } } })).await.unwrap();
    bench.widget("b", json!({ "size": 1 })).await.unwrap();
    assert_eq!(told(next(&mut open).await.unwrap()), (EventKind::Added, "b".to_owned()));
    let mut versions = made["spec"]["versions"].clone();
    versions[0]["additionalPrinterColumns"] =
        json!([{ "name": "Size", "type": "integer", "jsonPath": ".spec.size" }]);
    patch(json!({ "spec": { "versions": versions } })).await.unwrap();
    assert_eq!(reason(next(&mut open).await), Reason::Expired);
    // The kind's objects are deleted first; only then do the watches end.
    let mut open = watch(WIDGETS).await;
    let task = tokio::spawn(crate::engine::crd_finalizer::run(engine.clone()));
    forsake(engine, &made).await;
    let mut seen = Vec::new();
    let end = loop {
        match next(&mut open).await {
            Ok(event) => seen.push(told(event)),
            Err(error) => break error.reason,
        }
    };
    assert_eq!(end, Reason::Expired);
    seen.retain(|(kind, _)| *kind == EventKind::Deleted);
    seen.sort_by(|one, other| one.1.cmp(&other.1));
    assert_eq!(seen, ["a", "b"].map(|name| (EventKind::Deleted, name.to_owned())));
    bench.hardware("nuc", json!({})).await;
    assert_eq!(told(next(&mut other).await.unwrap()), (EventKind::Added, "nuc".to_owned()));
    task.abort();
}

#[tokio::test]
async fn kubernetes_own_kinds_are_nobody_elses() {
    let bench = bench().await;
    let engine = &bench.engine;
    let role = json!({ "metadata": { "name": "kept" }, "rules": [] });
    engine.create(CLUSTER_ROLES, "", role, WriteOptions::default()).await.unwrap();
    let task = tokio::spawn(crate::engine::crd_finalizer::run(engine.clone()));
    let rival = |version: &str| {
        let mut rival = crd("clusterroles", "ClusterRole", json!({ "type": "object" }));
        rival["metadata"] = json!({
            "name": "clusterroles.rbac.authorization.k8s.io",
            "annotations": { "api-approved.kubernetes.io": "unapproved, for a test" },
        });
        rival["spec"]["group"] = json!("rbac.authorization.k8s.io");
        rival["spec"]["versions"][0]["name"] = json!(version);
        rival
    };
    for version in ["v1", "v2"] {
        let made = bench.define(rival(version)).await.unwrap();
        assert_eq!(condition(&made, "NamesAccepted")["status"], "False", "{version}");
        assert_eq!(condition(&made, "Established")["status"], "False", "{version}");
        let registry = engine.registry();
        let served = registry.all().iter().filter(|one| one.kind == "ClusterRole");
        assert_eq!(served.count(), 1, "{version}");
        forsake(engine, &made).await;
        assert!(engine.get(CLUSTER_ROLES, "", "kept").await.is_ok(), "{version}");
    }
    // A definition that an earlier release accepted must not delete the objects of another kind
    // either.
    let mut established = rival("v2");
    schema::crd::default(&mut established);
    established["metadata"]["finalizers"] = json!([crds::FINALIZER]);
    established["status"] = json!({
        "acceptedNames": established["spec"]["names"], "storedVersions": ["v2"],
        "conditions": [{ "type": "Established", "status": "True" }],
    });
    let name = established["metadata"]["name"].as_str().unwrap().to_owned();
    store(engine, &name, Some(&established)).await;
    engine.ensure_permanent().await.unwrap();
    let registry = engine.registry();
    assert!(registry.by_path("rbac.authorization.k8s.io", "v2", "clusterroles").is_none());
    forsake(engine, &established).await;
    assert!(engine.get(CLUSTER_ROLES, "", "kept").await.is_ok());
    task.abort();
}

/// Deletes a definition and waits until it is gone.
async fn forsake(engine: &Engine, crd: &Value) {
    let name = crd["metadata"]["name"].as_str().unwrap();
    engine.delete(CRDS, "", name, DeleteOptions::default()).await.unwrap();
    let gone = async {
        while engine.get(CRDS, "", name).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn the_endpoint_of_a_provisioned_cluster_cannot_be_changed() {
    const CLUSTERS: &str = "infrastructure.cluster.x-k8s.io/tinkerbellclusters";
    let bench = bench().await;
    let patch = async |patch: Value, part: Part| {
        let patch = Patch::merge(patch).unwrap();
        let options = WriteOptions { part, ..WriteOptions::default() };
        bench.engine.patch(CLUSTERS, "default", "c", patch, options).await
    };
    let endpoint = |host: &str, port: u16| {
        let endpoint = json!({ "host": host, "port": port });
        json!({ "spec": { "controlPlaneEndpoint": endpoint } })
    };
    bench.create(CLUSTERS, json!({ "metadata": { "name": "c" }, "spec": {} })).await.unwrap();
    // Until the infrastructure is provisioned, a person can correct a conflict.
    patch(endpoint("10.77.0.11", 6443), Part::Main).await.unwrap();
    patch(endpoint("10.77.0.200", 6443), Part::Main).await.unwrap();
    patch(json!({ "status": { "ready": true } }), Part::Status).await.unwrap();
    patch(endpoint("10.77.0.200", 6443), Part::Main).await.unwrap();
    patch(json!({ "spec": { "imageLookupOSVersion": "22.04" } }), Part::Main).await.unwrap();
    for (change, field) in [
        (endpoint("10.77.0.201", 6443), "host"),
        (endpoint("10.77.0.200", 7443), "port"),
        (json!({ "spec": { "controlPlaneEndpoint": null } }), "host"),
    ] {
        let error = patch(change, Part::Main).await.unwrap_err().to_string();
        let expected = format!("spec.controlPlaneEndpoint.{field} cannot be changed after");
        assert!(error.contains(&expected), "{error}");
    }
}
