//! Tests of create, update, patch and delete.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::{DeleteOptions, Deleted, Part, Patch, Propagation, WriteOptions};
use super::{Bench, HARDWARE, NAMESPACES, RECORDS, SECRETS, bench, reason, revision};
use crate::status_error::Reason;

#[tokio::test]
async fn create_fills_what_is_the_servers() {
    let bench = bench().await;
    let object = json!({
        "apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware",
        "metadata": {
            "name": "nuc-1", "uid": "mine", "generation": 7, "selfLink": "x", "managedFields": [],
            "creationTimestamp": null, "deletionTimestamp": "2020-01-01T00:00:00Z",
        },
        "spec": { "agentID": "a" },
        "status": { "state": "Ready" },
    });
    let created = bench.create(HARDWARE, object).await.unwrap();
    let metadata = created["metadata"].as_object().unwrap();
    assert_eq!(metadata["creationTimestamp"], "2026-11-20T10:00:00Z");
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert_eq!(metadata["managedFields"].as_array().unwrap().len(), 1);
    for gone in ["selfLink", "deletionTimestamp"] {
        assert!(!metadata.contains_key(gone), "{gone}");
    }
    assert!(created.get("status").is_none());
    assert_eq!(bench.get("nuc-1").await.unwrap(), created);
}

#[tokio::test]
async fn create_refuses_what_does_not_fit() {
    let bench = bench().await;
    bench.hardware("taken", json!({})).await;
    let named = |name: &str| json!({ "metadata": { "name": name } });
    for (object, expected) in [
        (named("taken"), Reason::AlreadyExists),
        (named("Not_A_Name"), Reason::Invalid),
        (json!({ "metadata": {} }), Reason::Invalid),
        (json!({}), Reason::Invalid),
        (json!([]), Reason::BadRequest),
        (json!({ "metadata": [] }), Reason::BadRequest),
        (json!({ "apiVersion": "v1", "metadata": { "name": "a" } }), Reason::BadRequest),
        (json!({ "kind": "Workflow", "metadata": { "name": "a" } }), Reason::Invalid),
        (json!({ "kind": 3, "metadata": { "name": "a" } }), Reason::BadRequest),
        (json!({ "metadata": { "name": "a", "namespace": "other" } }), Reason::BadRequest),
        (json!({ "metadata": { "name": "a", "resourceVersion": "1" } }), Reason::BadRequest),
        (json!({ "metadata": { "name": "a", "labels": { "a b": "c" } } }), Reason::Invalid),
        (json!({ "metadata": { "name": "a", "labels": { "a": 1 } } }), Reason::BadRequest),
        (json!({ "metadata": { "name": "a", "finalizers": ["x y"] } }), Reason::Invalid),
        (json!({ "metadata": { "name": "a", "ownerReferences": [{}] } }), Reason::Invalid),
        (
            json!({ "metadata": { "name": "a", "annotations": { "a": "x".repeat(300_000) } } }),
            Reason::Invalid,
        ),
        (
            json!({ "metadata": { "name": "a" }, "spec": { "userData": "y".repeat(4_000_000) } }),
            Reason::RequestEntityTooLarge,
        ),
    ] {
        let text = object.to_string().chars().take(100).collect::<String>();
        assert_eq!(reason(bench.create(HARDWARE, object).await), expected, "{text}");
    }
    // A stored object must be readable, also in a list: at 128 levels it would not be.
    let nested = (0..120).fold(json!(1), |inner, _| json!({ "a": inner }));
    let deep = json!({ "metadata": { "name": "deep" }, "spec": nested });
    let open = "cluster.x-k8s.io/machines";
    assert_eq!(reason(bench.create(open, deep).await), Reason::BadRequest);
    let create = |resource: &'static str, namespace: &'static str| {
        bench.engine.create(resource, namespace, named("a"), WriteOptions::default())
    };
    let missing = create(HARDWARE, "nowhere").await.unwrap_err();
    assert_eq!(missing.reason, Reason::NotFound);
    assert_eq!(missing.message, "namespaces \"nowhere\" not found");
    assert_eq!(reason(create(HARDWARE, "").await), Reason::BadRequest);
    assert_eq!(reason(create(NAMESPACES, "default").await), Reason::BadRequest);
    assert_eq!(reason(create("tinkerbell.org/unknown", "default").await), Reason::NotFound);
}

#[tokio::test]
async fn messages_are_those_clients_know() {
    let bench = bench().await;
    bench.hardware("a", json!({})).await;
    let taken = json!({ "metadata": { "name": "a" } });
    let error = bench.create(HARDWARE, taken).await.unwrap_err();
    assert_eq!(error.message, "hardware.tinkerbell.org \"a\" already exists");
    let error = bench.get("b").await.unwrap_err();
    assert_eq!(
        error.to_value(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "hardware.tinkerbell.org \"b\" not found", "reason": "NotFound", "code": 404,
            "details": { "name": "b", "group": "tinkerbell.org", "kind": "hardware" },
        })
    );
    let bad = json!({
        "metadata": { "name": "c" },
        "spec": { "interfaces": [{ "dhcp": { "mac": "AA" } }] },
    });
    let error = bench.create(HARDWARE, bad).await.unwrap_err();
    let status = error.to_value();
    assert_eq!(status["details"]["kind"], "Hardware");
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueInvalid");
    assert_eq!(status["details"]["causes"][0]["field"], "spec.interfaces[0].dhcp.mac");
    assert!(error.message.starts_with(
        "Hardware.tinkerbell.org \"c\" is invalid: spec.interfaces[0].dhcp.mac: Invalid value: \
         \"AA\": spec.interfaces[0].dhcp.mac in body should match"
    ));
}

#[tokio::test]
async fn names_are_generated_once_each() {
    let bench = bench().await;
    let mut names = Vec::new();
    for _ in 0..20 {
        let object = json!({ "metadata": { "generateName": "boot-" } });
        let created = bench.create(HARDWARE, object).await.unwrap();
        let name = created["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(name.len() == 10 && name.starts_with("boot-"), "{name}");
        names.push(name);
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 20);
    let bad = json!({ "metadata": { "generateName": "Boot_" } });
    assert_eq!(reason(bench.create(HARDWARE, bad).await), Reason::Invalid);
}

#[tokio::test]
async fn a_stale_copy_is_refused() {
    let bench = bench().await;
    let first = bench.hardware("a", json!({})).await;
    let mut one = first.clone();
    one["spec"] = json!({ "agentID": "one" });
    let updated = bench.update(&one, WriteOptions::default()).await.unwrap();
    assert!(revision(&updated) > revision(&first));
    let mut two = first.clone();
    two["spec"] = json!({ "agentID": "two" });
    let error = bench.update(&two, WriteOptions::default()).await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    assert_eq!(
        error.message,
        "Operation cannot be fulfilled on hardware.tinkerbell.org \"a\": the object has been \
         modified; please apply your changes to the latest version and try again"
    );
    assert_eq!(reason(bench.update(&two, WriteOptions::status()).await), Reason::Conflict);
    // A patch that names a stale revision is refused; a patch without a revision is applied to the
    // present object.
    let stale = json!({ "metadata": { "resourceVersion": revision(&first).to_string() } });
    assert_eq!(reason(bench.merge("a", stale).await), Reason::Conflict);
    let patched = bench.merge("a", json!({ "spec": { "tinkVersion": 1 } })).await.unwrap();
    assert_eq!(patched["spec"], json!({ "agentID": "one", "tinkVersion": 1 }));
    // Update without a revision: custom kinds refuse it, core kinds accept it.
    let mut bare = updated.clone();
    bare["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    assert_eq!(reason(bench.update(&bare, WriteOptions::default()).await), Reason::Invalid);
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "b" } });
    bench.create(SECRETS, secret).await.unwrap();
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "c" } });
    let options = WriteOptions::default();
    let updated = bench.engine.update(SECRETS, "default", "s", secret, options).await.unwrap();
    assert_eq!(updated["data"]["a"], "Yw==");
    // An object with another uid is another object, despite the same name.
    let uid = json!({ "metadata": { "uid": "00000000-0000-4000-8000-000000000000" } });
    assert_eq!(reason(bench.merge("a", uid.clone()).await), Reason::Invalid);
    let mut other = bench.get("a").await.unwrap();
    other["metadata"]["uid"] = uid["metadata"]["uid"].clone();
    assert_eq!(reason(bench.update(&other, WriteOptions::default()).await), Reason::Conflict);
    let renamed = json!({ "metadata": { "name": "b" } });
    assert_eq!(reason(bench.merge("a", renamed).await), Reason::BadRequest);
    assert_eq!(reason(bench.merge("b", json!({})).await), Reason::NotFound);
}

#[tokio::test]
async fn concurrent_writers_from_one_copy_make_one_winner() {
    let bench = bench().await;
    let first = bench.hardware("a", json!({})).await;
    let writes = (0..20).map(|at| {
        let mut copy = first.clone();
        copy["spec"] = json!({ "agentID": at.to_string() });
        let engine = bench.engine.clone();
        async move { engine.update(HARDWARE, "default", "a", copy, WriteOptions::default()).await }
    });
    let results = futures_util::future::join_all(writes).await;
    let won = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(won, 1);
    let lost = results.iter().filter_map(|result| result.as_ref().err());
    assert!(lost.clone().all(|error| error.reason == Reason::Conflict) && lost.count() == 19);
}

#[tokio::test]
async fn spec_and_status_are_written_apart() {
    let bench = bench().await;
    let first = bench.hardware("a", json!({ "l": "1" })).await;
    let mut both = first.clone();
    both["spec"] = json!({ "agentID": "x" });
    both["status"] = json!({ "state": "Ready" });
    both["metadata"]["labels"] = json!({ "l": "2" });
    let status = bench.update(&both, WriteOptions::status()).await.unwrap();
    assert_eq!(status["status"], json!({ "state": "Ready" }));
    assert_eq!(status["spec"], json!({}));
    assert_eq!(status["metadata"]["labels"], json!({ "l": "1" }));
    assert_eq!(status["metadata"]["generation"], 1);
    both["metadata"]["resourceVersion"] = status["metadata"]["resourceVersion"].clone();
    both["status"] = json!({ "state": "Error" });
    let main = bench.update(&both, WriteOptions::default()).await.unwrap();
    assert_eq!(main["status"], json!({ "state": "Ready" }));
    assert_eq!(main["spec"], json!({ "agentID": "x" }));
    assert_eq!(main["metadata"]["generation"], 2);
    // A change of metadata only keeps the generation, and ignores the client's values for server
    // fields.
    let patch = json!({ "metadata": { "labels": { "l": null }, "generation": 99, "uid": null } });
    let labelled = bench.merge("a", patch).await.unwrap();
    assert_eq!(labelled["metadata"]["generation"], 2);
    assert_eq!(labelled["metadata"]["uid"], first["metadata"]["uid"]);
    // A kind without the subresource stores its status with the other fields.
    let record = json!({ "metadata": { "name": "t" }, "reason": "x" });
    let record = bench.create(RECORDS, record).await.unwrap();
    assert_eq!(record["reason"], "x");
    let options = WriteOptions::status();
    let write = bench.engine.update(RECORDS, "default", "t", record, options);
    assert_eq!(reason(write.await), Reason::NotFound);
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_none() {
    let bench = bench().await;
    let first = bench.hardware("a", json!({})).await;
    let again = bench.update(&first, WriteOptions::default()).await.unwrap();
    assert_eq!(again, first);
    let again = bench.merge("a", json!({ "spec": {} })).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(bench.engine.revision(), revision(&first));
}

#[tokio::test]
async fn dry_runs_leave_nothing_behind() {
    let bench = bench().await;
    let dry = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let object = json!({ "metadata": { "name": "a" } });
    let would = bench.engine.create(HARDWARE, "default", object, dry.clone()).await.unwrap();
    assert!(would["metadata"]["uid"].is_string());
    assert_eq!(reason(bench.get("a").await), Reason::NotFound);
    let first = bench.hardware("a", json!({})).await;
    let patch = Patch::merge(json!({ "spec": { "agentID": "x" } })).unwrap();
    let would = bench.engine.patch(HARDWARE, "default", "a", patch, dry).await.unwrap();
    assert_eq!(would["spec"]["agentID"], "x");
    let options = DeleteOptions { dry_run: true, ..DeleteOptions::default() };
    bench.engine.delete(HARDWARE, "default", "a", options).await.unwrap();
    assert_eq!(bench.get("a").await.unwrap(), first);
}

async fn delete(bench: &Bench, options: DeleteOptions) -> Result<Deleted, crate::StatusError> {
    bench.engine.delete(HARDWARE, "default", "a", options).await
}

#[tokio::test]
async fn finalizers_hold_an_object_back() {
    let bench = bench().await;
    let object = json!({ "metadata": { "name": "a", "finalizers": ["x.org/one", "two"] } });
    bench.create(HARDWARE, object).await.unwrap();
    bench.clock.advance(SignedDuration::from_secs(5));
    let Ok(Deleted::Finalizing(marked)) = delete(&bench, DeleteOptions::default()).await else {
        panic!("the finalizers do not hold");
    };
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-11-20T10:00:05Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(marked["metadata"]["generation"], 2);
    // A second delete changes nothing.
    bench.clock.advance(SignedDuration::from_secs(5));
    let again = delete(&bench, DeleteOptions::default()).await.unwrap();
    assert_eq!(again, Deleted::Finalizing(marked.clone()));
    // No finalizer can be added, and the deletion cannot be undone.
    let more = json!({ "metadata": { "finalizers": ["x.org/one", "two", "three"] } });
    assert_eq!(reason(bench.merge("a", more).await), Reason::Invalid);
    let undo = json!({ "metadata": { "deletionTimestamp": null } });
    assert_eq!(bench.merge("a", undo).await.unwrap(), marked);
    let fewer = json!({ "metadata": { "finalizers": ["two"] } });
    bench.merge("a", fewer).await.unwrap();
    let none = json!({ "metadata": { "finalizers": null } });
    let last = bench.merge("a", none).await.unwrap();
    assert!(revision(&last) > revision(&marked));
    assert_eq!(reason(bench.get("a").await), Reason::NotFound);
}

#[tokio::test]
async fn deletes_can_be_particular() {
    let bench = bench().await;
    let object = bench.hardware("a", json!({})).await;
    let uid = |uid: &Value| DeleteOptions {
        uid: Some(uid.as_str().unwrap().to_owned()),
        ..DeleteOptions::default()
    };
    assert_eq!(reason(delete(&bench, uid(&json!("other"))).await), Reason::Conflict);
    let stale =
        DeleteOptions { resource_version: Some("1".to_owned()), ..DeleteOptions::default() };
    assert_eq!(reason(delete(&bench, stale).await), Reason::Conflict);
    let gone = delete(&bench, uid(&object["metadata"]["uid"])).await.unwrap();
    assert!(matches!(&gone, Deleted::Gone(last) if revision(last) > revision(&object)));
    assert_eq!(reason(delete(&bench, DeleteOptions::default()).await), Reason::NotFound);
}

#[tokio::test]
async fn a_policy_beats_the_finalizers() {
    let bench = bench().await;
    let delete = |name: &'static str, propagation| {
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        bench.engine.delete(HARDWARE, "default", name, options)
    };
    let finalizers = |deleted: &Deleted| deleted.object()["metadata"]["finalizers"].clone();
    bench.hardware("a", json!({})).await;
    let held = delete("a", Some(Propagation::Foreground)).await.unwrap();
    assert_eq!(finalizers(&held), json!(["foregroundDeletion"]));
    assert!(held.object()["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(held.object()["metadata"]["generation"], 2);
    // Without a policy nothing changes, not even the revision.
    let same = delete("a", None).await.unwrap();
    assert_eq!(same, held);
    let held = delete("a", Some(Propagation::Orphan)).await.unwrap();
    assert_eq!(finalizers(&held), json!(["orphan"]));
    assert_eq!(held.object()["metadata"]["generation"], 2);
    let gone = delete("a", Some(Propagation::Background)).await.unwrap();
    assert!(matches!(&gone, Deleted::Gone(last) if last["metadata"]["finalizers"].is_null()));
    let object = json!({ "metadata": { "name": "b", "finalizers": ["x.y/z", "orphan"] } });
    bench.create(HARDWARE, object).await.unwrap();
    let held = delete("b", Some(Propagation::Background)).await.unwrap();
    assert_eq!(finalizers(&held), json!(["x.y/z"]));
}

#[tokio::test]
async fn records_give_way_to_newer_ones() {
    let bench = bench().await;
    for name in ["c", "a", "d", "b", "e"] {
        let object = json!({ "metadata": { "name": name } });
        bench.create(RECORDS, object).await.unwrap();
    }
    let options = super::super::ListOptions::default();
    let list = bench.engine.list(RECORDS, Some("default"), options).await.unwrap();
    let names: Vec<&str> =
        list.items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["b", "d", "e"]);
}

#[tokio::test]
async fn what_is_stored_is_of_its_kinds_type() {
    let bench = bench().await;
    let hardware = |dhcp: Value| {
        let spec = json!({ "interfaces": [{ "dhcp": dhcp }], "disks": null });
        json!({ "metadata": { "name": "nuc-1", "labels": null }, "spec": spec })
    };
    let wrong = bench.create(HARDWARE, hardware(json!({ "lease_time": "3600" }))).await;
    let wrong = wrong.unwrap_err();
    assert_eq!((wrong.reason, wrong.reason.code()), (Reason::Invalid, 422));
    // The second cause reports that CEL rules could not run on the object.
    assert_eq!(wrong.details.causes.len(), 2);
    assert_eq!(wrong.details.causes[0].field, "spec.interfaces[0].dhcp.lease_time");
    let dhcp = json!({ "lease_time": 3600, "hostname": null });
    let created = bench.create(HARDWARE, hardware(dhcp)).await.unwrap();
    let typed: api::tinkerbell::Hardware = serde_json::from_value(created.clone()).unwrap();
    assert_eq!(typed.spec.interfaces[0].dhcp.as_ref().unwrap().lease_time, 3600);
    assert_eq!(created["spec"]["interfaces"][0]["disableDhcp"], false);
    let wrong = bench.merge("nuc-1", json!({ "spec": { "agentID": 7 } })).await.unwrap_err();
    assert_eq!(wrong.details.causes[0].field, "spec.agentID");
}

#[tokio::test]
async fn a_run_that_has_begun_can_be_stopped_but_not_turned() {
    let bench = bench().await;
    let workflows = "tinkerbell.org/workflows";
    let spec = json!({ "templateRef": "install", "hardwareRef": "nuc-1" });
    let object = json!({ "metadata": { "name": "run" }, "spec": spec });
    bench.create(workflows, object).await.unwrap();
    let patch = async |patch: Value, part: Part| {
        let options = WriteOptions { part, ..WriteOptions::default() };
        let patch = Patch::merge(patch).unwrap();
        bench.engine.patch(workflows, "default", "run", patch, options).await
    };
    let other = |name: &str| json!({ "spec": { "hardwareRef": name } });
    patch(other("nuc-2"), Part::Main).await.unwrap();
    patch(json!({ "status": { "state": "PREPARING" } }), Part::Status).await.unwrap();
    let refused = patch(other("nuc-3"), Part::Main).await.unwrap_err();
    assert_eq!((refused.reason, refused.reason.code()), (Reason::Invalid, 422));
    assert_eq!(
        refused.details.causes[0].message,
        "Forbidden: field is immutable once the workflow has begun; delete it and create another"
    );
    let stopped = patch(json!({ "spec": { "disabled": true } }), Part::Main).await.unwrap();
    assert_eq!(stopped["spec"]["hardwareRef"], "nuc-2");
    patch(json!({ "status": { "state": "FAILED" } }), Part::Status).await.unwrap();
}
