//! Tests of the collector: owners and dependents, deletion of namespaces, expiry of records.

mod late;

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use stdx::testing::PATIENCE;
use store::Key;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::super::{
    Collector, DeleteOptions, Deleted, Engine, ListOptions, MAX_OBJECT_BYTES, Part, Patch,
    Propagation, WriteOptions,
};
use super::kinds::{crd, widget_spec};
use super::{Bench, EVENTS, HARDWARE, NAMESPACES, SECRETS, TEMPLATES, bench, reason};
use crate::crds;
use crate::status_error::{Reason, StatusError};

/// Running collector task with its stop signal.
struct Collecting {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Collecting {
    fn start(engine: &Engine, defaults: Vec<(String, Value)>) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let collector = Collector::new(engine.clone(), defaults);
        let task = tokio::spawn(collector.run(async {
            let _ = stopped.await;
        }));
        Self { stop, task }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap();
    }
}

/// Waits until `condition` is true for the result of `read`.
async fn until<T: std::fmt::Debug, F: Future<Output = T>>(
    mut read: impl FnMut() -> F,
    condition: impl Fn(&T) -> bool,
) -> T {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let last = read().await;
        if condition(&last) {
            return last;
        }
        assert!(tokio::time::Instant::now() < deadline, "still {last:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn gone(bench: &Bench, resource: &str, namespace: &str, name: &str) {
    let read = || bench.engine.get(resource, namespace, name);
    let is_gone = |found: &Result<Value, StatusError>| {
        found.as_ref().is_err_and(|error| error.reason == Reason::NotFound)
    };
    until(read, is_gone).await.unwrap_err();
}

fn owner(object: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "name": object["metadata"]["name"], "uid": object["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    })
}

async fn owned(bench: &Bench, resource: &str, name: &str, owners: Value) -> Value {
    let object = json!({ "metadata": { "name": name, "ownerReferences": owners } });
    bench.create(resource, object).await.unwrap()
}

async fn delete(bench: &Bench, name: &str, propagation: Propagation) -> Deleted {
    let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
    bench.engine.delete(HARDWARE, "default", name, options).await.unwrap()
}

async fn names(bench: &Bench, resource: &str, namespace: Option<&str>) -> Vec<String> {
    let list = bench.engine.list(resource, namespace, ListOptions::default()).await.unwrap();
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list.items.iter().map(name).collect()
}

#[tokio::test]
async fn dependents_follow_their_owner() {
    let bench = bench().await;
    let collecting = Collecting::start(&bench.engine, Vec::new());
    let root = bench.hardware("root", json!({})).await;
    let child = owned(&bench, TEMPLATES, "child", json!([owner(&root, false)])).await;
    owned(&bench, SECRETS, "grandchild", json!([owner(&child, true)])).await;
    let other = bench.hardware("other", json!({})).await;
    owned(&bench, SECRETS, "shared", json!([owner(&root, true), owner(&other, false)])).await;
    assert!(matches!(delete(&bench, "root", Propagation::Background).await, Deleted::Gone(_)));
    gone(&bench, TEMPLATES, "default", "child").await;
    gone(&bench, SECRETS, "default", "grandchild").await;
    // A dependent with another owner loses the reference to the lost one.
    let shared = until(
        || async { bench.engine.get(SECRETS, "default", "shared").await.unwrap() },
        |shared| shared["metadata"]["ownerReferences"].as_array().unwrap().len() == 1,
    )
    .await;
    assert_eq!(shared["metadata"]["ownerReferences"][0]["name"], "other");
    collecting.stop().await;
}

#[tokio::test]
async fn what_was_orphaned_while_nobody_looked_is_found_at_the_start() {
    let bench = bench().await;
    let root = bench.hardware("root", json!({})).await;
    owned(&bench, SECRETS, "old", json!([owner(&root, false)])).await;
    delete(&bench, "root", Propagation::Background).await;
    // Another object of that name is not the owner.
    bench.hardware("root", json!({})).await;
    let unserved = json!({
        "apiVersion": "example.com/v1", "kind": "Unknown", "name": "x", "uid": "1",
    });
    owned(&bench, SECRETS, "strange", json!([unserved])).await;
    let collecting = Collecting::start(&bench.engine, Vec::new());
    gone(&bench, SECRETS, "default", "old").await;
    assert_eq!(names(&bench, SECRETS, None).await, ["strange"]);
    collecting.stop().await;
}

#[tokio::test]
async fn dependents_follow_an_owner_that_went_with_its_kind() {
    let bench = bench().await;
    let engine = &bench.engine;
    let collecting = Collecting::start(engine, Vec::new());
    bench.define(crd("widgets", "Widget", widget_spec())).await.unwrap();
    let widget = json!({ "metadata": { "name": "a" }, "spec": { "size": 1 } });
    let widget = bench.create("example.net/widgets", widget).await.unwrap();
    owned(&bench, SECRETS, "child", json!([owner(&widget, false)])).await;
    // When the collector looks for the owner, both the owner and its kind are gone.
    let written = engine.inner.store.write(|txn| {
        txn.delete(&Key::new("example.net/widgets", "default", "a"))?;
        txn.delete(&Key::new(crds::RESOURCE, "", "widgets.example.net"))
    });
    written.await.unwrap().unwrap();
    engine.reload_kinds().await.unwrap();
    gone(&bench, SECRETS, "default", "child").await;
    collecting.stop().await;
}

#[tokio::test]
async fn steady_writes_hold_up_nothing() {
    let bench = bench().await;
    let collecting = Collecting::start(&bench.engine, Vec::new());
    let root = bench.hardware("root", json!({})).await;
    bench.hardware("busy", json!({})).await;
    owned(&bench, SECRETS, "child", json!([owner(&root, false)])).await;
    delete(&bench, "root", Propagation::Background).await;
    let write = async |writer: u8| {
        for at in 0.. {
            let agent = format!("{writer}-{at}");
            bench.merge("busy", json!({ "spec": { "agentID": agent } })).await.unwrap();
        }
    };
    let writers = futures_util::future::join_all([write(0), write(1), write(2), write(3)]);
    tokio::select! {
        _ = writers => unreachable!("they write for ever"),
        () = gone(&bench, SECRETS, "default", "child") => {}
    }
    collecting.stop().await;
}

#[tokio::test]
async fn records_live_from_their_last_write() {
    let bench = bench().await;
    let minutes = |count: i64| bench.clock.advance(SignedDuration::from_mins(count));
    let event = |name: &str| {
        let about = json!({ "kind": "Hardware", "name": "nuc", "namespace": "default" });
        json!({ "metadata": { "name": name }, "involvedObject": about, "count": 1 })
    };
    bench.create(EVENTS, event("again")).await.unwrap();
    minutes(30);
    bench.create(EVENTS, event("once")).await.unwrap();
    minutes(20);
    let patch = Patch::merge(json!({ "count": 2 })).unwrap();
    let options = WriteOptions::default();
    bench.engine.patch(EVENTS, "default", "again", patch, options).await.unwrap();
    minutes(45);
    // A newly started collector knows only the times in the records themselves.
    let collecting = Collecting::start(&bench.engine, Vec::new());
    gone(&bench, EVENTS, "default", "once").await;
    assert_eq!(names(&bench, EVENTS, None).await, ["again"]);
    collecting.stop().await;
    minutes(20);
    let collecting = Collecting::start(&bench.engine, Vec::new());
    gone(&bench, EVENTS, "default", "again").await;
    collecting.stop().await;
}

#[tokio::test]
async fn the_foreground_waits_for_those_that_block() {
    let bench = bench().await;
    let collecting = Collecting::start(&bench.engine, Vec::new());
    let root = bench.hardware("root", json!({})).await;
    let held = json!({
        "metadata": {
            "name": "held", "finalizers": ["x.y/z"], "ownerReferences": [owner(&root, true)],
        },
    });
    bench.create(SECRETS, held).await.unwrap();
    owned(&bench, SECRETS, "free", json!([owner(&root, true)])).await;
    let deleted = delete(&bench, "root", Propagation::Foreground).await;
    assert!(matches!(deleted, Deleted::Finalizing(_)));
    gone(&bench, SECRETS, "default", "free").await;
    let held = || async { bench.engine.get(SECRETS, "default", "held").await.unwrap() };
    until(held, |held| held["metadata"]["deletionTimestamp"].is_string()).await;
    assert!(bench.get("root").await.is_ok());
    let patch = Patch::merge(json!({ "metadata": { "finalizers": null } })).unwrap();
    let options = WriteOptions::default();
    bench.engine.patch(SECRETS, "default", "held", patch, options).await.unwrap();
    gone(&bench, HARDWARE, "default", "root").await;
    collecting.stop().await;
}

#[tokio::test]
async fn orphans_stay_and_forget() {
    let bench = bench().await;
    let collecting = Collecting::start(&bench.engine, Vec::new());
    let root = bench.hardware("root", json!({})).await;
    for name in ["a", "b"] {
        owned(&bench, SECRETS, name, json!([owner(&root, true)])).await;
    }
    let deleted = delete(&bench, "root", Propagation::Orphan).await;
    assert_eq!(deleted.object()["metadata"]["finalizers"], json!(["orphan"]));
    gone(&bench, HARDWARE, "default", "root").await;
    for name in ["a", "b"] {
        let orphan = bench.engine.get(SECRETS, "default", name).await.unwrap();
        assert!(orphan["metadata"].get("ownerReferences").is_none(), "{orphan}");
    }
    collecting.stop().await;
}

#[tokio::test]
async fn circles_go_too() {
    let bench = bench().await;
    let collecting = Collecting::start(&bench.engine, Vec::new());
    let mut objects = Vec::new();
    for name in ["a", "b", "c"] {
        objects.push(bench.hardware(name, json!({})).await);
    }
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        let before = &objects[(at + 2) % 3];
        let owners = json!({ "metadata": { "ownerReferences": [owner(before, true)] } });
        bench.merge(name, owners).await.unwrap();
    }
    delete(&bench, "a", Propagation::Foreground).await;
    for name in ["a", "b", "c"] {
        gone(&bench, HARDWARE, "default", name).await;
    }
    collecting.stop().await;
}

#[tokio::test]
async fn a_namespace_ends_when_it_is_empty() {
    let bench = bench().await;
    let engine = &bench.engine;
    let defaults = vec![(SECRETS.to_owned(), json!({ "metadata": { "name": "made" } }))];
    let collecting = Collecting::start(engine, defaults);
    let rack = json!({ "metadata": { "name": "rack" } });
    let created = engine.create(NAMESPACES, "", rack, WriteOptions::default()).await.unwrap();
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], "rack");
    assert_eq!(created["status"]["phase"], "Active");
    assert_eq!(created["spec"]["finalizers"], json!(["kubernetes"]));
    // Default objects of a namespace are created, and created again after deletion.
    let made = || engine.get(SECRETS, "rack", "made");
    until(made, Result::is_ok).await.unwrap();
    engine.delete(SECRETS, "rack", "made", DeleteOptions::default()).await.unwrap();
    until(made, Result::is_ok).await.unwrap();
    for at in 0..200 {
        let name = format!("s{at}");
        let secret = json!({ "metadata": { "name": name } });
        engine.create(SECRETS, "rack", secret, WriteOptions::default()).await.unwrap();
    }
    let held = json!({ "metadata": { "name": "nuc", "finalizers": ["x.y/z"] } });
    engine.create(HARDWARE, "rack", held, WriteOptions::default()).await.unwrap();
    let ended = engine.delete(NAMESPACES, "", "rack", DeleteOptions::default()).await.unwrap();
    let Deleted::Finalizing(ended) = ended else { panic!("{ended:?}") };
    assert_eq!(ended["status"]["phase"], "Terminating");
    assert!(ended["metadata"].get("deletionGracePeriodSeconds").is_none());
    let late = json!({ "metadata": { "name": "late" } });
    let late = engine.create(SECRETS, "rack", late, WriteOptions::default()).await.unwrap_err();
    assert_eq!(
        late.message,
        "secrets \"late\" is forbidden: unable to create new content in namespace rack because it \
         is being terminated"
    );
    // The namespace's conditions name what blocks its deletion.
    let namespace = || async { engine.get(NAMESPACES, "", "rack").await.unwrap() };
    let says = |namespace: &Value| namespace["status"]["conditions"].is_array();
    let waiting = until(namespace, says).await;
    let messages: Vec<&str> = waiting["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        messages,
        [
            "Some resources are remaining: hardware.tinkerbell.org has 1 resource instances",
            "Some content in the namespace has finalizers remaining: x.y/z in 1 resource instances",
        ]
    );
    assert_eq!(names(&bench, SECRETS, Some("rack")).await, Vec::<String>::new());
    let patch = Patch::merge(json!({ "metadata": { "finalizers": [] } })).unwrap();
    engine.patch(HARDWARE, "rack", "nuc", patch, WriteOptions::default()).await.unwrap();
    gone(&bench, NAMESPACES, "", "rack").await;
    for name in ["default", "kube-system", "kube-public"] {
        let kept = engine.delete(NAMESPACES, "", name, DeleteOptions::default()).await;
        let message = kept.unwrap_err().message;
        let why = "is forbidden: this namespace may not be deleted";
        assert_eq!(message, format!("namespaces \"{name}\" {why}"));
    }
    // Permanent namespaces are created only once.
    let before = engine.revision();
    engine.ensure_permanent().await.unwrap();
    assert_eq!(engine.revision(), before);
    collecting.stop().await;
}

#[tokio::test]
async fn a_namespaces_finalizers_have_a_door_of_their_own() {
    let bench = bench().await;
    let engine = &bench.engine;
    let rack = json!({
        "metadata": { "name": "rack" }, "spec": { "finalizers": ["x.y/z"] },
        "status": { "phase": "Terminating" },
    });
    let created = engine.create(NAMESPACES, "", rack, WriteOptions::default()).await.unwrap();
    assert_eq!(created["spec"]["finalizers"], json!(["x.y/z", "kubernetes"]));
    assert_eq!(created["status"], json!({ "phase": "Active" }));
    let patch = async |patch: Value, part| {
        let options = WriteOptions { part, ..WriteOptions::default() };
        engine.patch(NAMESPACES, "", "rack", Patch::merge(patch).unwrap(), options).await
    };
    let none = json!({ "spec": { "finalizers": null }, "metadata": { "labels": { "a": "b" } } });
    let kept = patch(none.clone(), Part::Main).await.unwrap();
    assert_eq!(kept["spec"]["finalizers"], json!(["x.y/z", "kubernetes"]));
    assert_eq!(kept["metadata"]["labels"]["kubernetes.io/metadata.name"], "rack");
    engine.delete(NAMESPACES, "", "rack", DeleteOptions::default()).await.unwrap();
    let one = json!({ "spec": { "finalizers": ["x.y/z"] } });
    assert_eq!(patch(one, Part::Finalize).await.unwrap()["spec"]["finalizers"], json!(["x.y/z"]));
    patch(none, Part::Finalize).await.unwrap();
    assert_eq!(reason(engine.get(NAMESPACES, "", "rack").await), Reason::NotFound);
}

#[tokio::test]
async fn an_object_of_the_largest_size_can_still_go() {
    let bench = bench().await;
    let root = bench.hardware("root", json!({})).await;
    let full = |bytes: usize, dry_run: bool| {
        let object = json!({
            "metadata": {
                "name": "full", "finalizers": ["x.y/a", "x.y/b"],
                "ownerReferences": [owner(&root, true)],
            },
            "spec": { "userData": "x".repeat(bytes) },
        });
        let options = WriteOptions { dry_run, ..WriteOptions::default() };
        bench.engine.create(HARDWARE, "default", object, options)
    };
    let empty = full(0, true).await.unwrap().to_string().len();
    let most = MAX_OBJECT_BYTES - empty;
    assert_eq!(reason(full(most + 1, false).await), Reason::RequestEntityTooLarge);
    full(most, false).await.unwrap();
    let collecting = Collecting::start(&bench.engine, Vec::new());
    delete(&bench, "root", Propagation::Background).await;
    let going = |found: &Result<Value, StatusError>| {
        found.as_ref().is_ok_and(|object| object["metadata"]["deletionTimestamp"].is_string())
    };
    until(|| bench.get("full"), going).await.unwrap();
    for finalizers in [json!(["x.y/b"]), json!([])] {
        let options = WriteOptions { manager: Some("another".to_owned()), ..Default::default() };
        let patch = Patch::merge(json!({ "metadata": { "finalizers": finalizers } })).unwrap();
        bench.engine.patch(HARDWARE, "default", "full", patch, options).await.unwrap();
    }
    assert_eq!(reason(bench.get("full").await), Reason::NotFound);
    collecting.stop().await;
}
