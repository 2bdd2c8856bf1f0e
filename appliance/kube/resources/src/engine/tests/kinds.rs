//! Tests of kinds that are added, changed and removed at run time, and of versions of one kind.

mod changing;
mod lossless;
mod narrowed;

use std::sync::Arc;

use serde_json::{Value, json};
use stdx::testing::PATIENCE;

use super::super::{
    DeleteOptions, Deleted, Engine, FieldValidation, ListOptions, Patch, Strictness, WriteOptions,
};
use super::{Bench, bench, reason};
use crate::status_error::Reason;
use crate::{builtin, crds};

const CRDS: &str = crds::RESOURCE;
const WIDGETS: &str = "example.net/widgets";

pub(super) fn crd(plural: &str, kind: &str, spec: Value) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": {
        "spec": spec,
        "status": { "type": "object", "properties": { "phase": { "type": "string" } } },
    } } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.net") },
        "spec": {
            "group": "example.net", "scope": "Namespaced",
            "names": { "plural": plural, "kind": kind },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema,
                "subresources": { "status": {} } }],
        },
    })
}

pub(super) fn widget_spec() -> Value {
    json!({ "type": "object", "properties": {
        "size": { "type": "integer", "minimum": 1 },
        "color": { "type": "string", "default": "red" },
    } })
}

impl Bench {
    pub(super) async fn define(&self, crd: Value) -> Result<Value, crate::StatusError> {
        self.engine.create(CRDS, "", crd, WriteOptions::default()).await
    }

    async fn widget(&self, name: &str, spec: Value) -> Result<Value, crate::StatusError> {
        self.create(WIDGETS, json!({ "metadata": { "name": name }, "spec": spec })).await
    }
}

fn condition<'a>(crd: &'a Value, kind: &str) -> &'a Value {
    let conditions = crd["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|one| one["type"] == kind).unwrap()
}

#[tokio::test]
async fn a_kind_is_served_as_soon_as_it_is_defined() {
    let bench = bench().await;
    assert_eq!(reason(bench.widget("a", json!({})).await), Reason::NotFound);
    let before = bench.engine.registry().generation();
    let made = bench.define(crd("widgets", "Widget", widget_spec())).await.unwrap();
    assert_eq!(condition(&made, "Established")["status"], "True");
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(made["spec"]["names"]["listKind"], "WidgetList");
    assert_eq!(made["spec"]["conversion"], json!({ "strategy": "None" }));
    assert!(bench.engine.registry().generation() > before);
    let widget = bench.widget("a", json!({ "size": 2, "unknown": 1 })).await.unwrap();
    assert_eq!(widget["spec"], json!({ "size": 2, "color": "red" }));
    assert_eq!(widget["apiVersion"], "example.net/v1");
    let refused = bench.widget("b", json!({ "size": 0 })).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
    assert_eq!(refused.details.causes[0].field, "spec.size");
    // An engine that starts on the same store serves the kind too.
    let store = bench.engine.inner.store.clone();
    let clock = Arc::new(bench.clock.clone());
    let again = Engine::new(store, builtin::registry().unwrap(), clock);
    again.ensure_permanent().await.unwrap();
    assert_eq!(again.get(WIDGETS, "default", "a").await.unwrap(), widget);
}

#[tokio::test]
async fn a_rule_that_was_broken_before_it_was_made_is_a_warning() {
    let bench = bench().await;
    bench.define(crd("widgets", "Widget", widget_spec())).await.unwrap();
    bench.widget("a", json!({ "size": 1, "color": "blue" })).await.unwrap();
    let mut ruled = widget_spec();
    ruled["properties"]["color"]["x-kubernetes-validations"] =
        json!([{ "rule": "self != 'blue'", "message": "blue is out" }]);
    let spec = crd("widgets", "Widget", ruled)["spec"].take();
    let patch = Patch::merge(json!({ "spec": spec })).unwrap();
    let name = "widgets.example.net";
    bench.engine.patch(CRDS, "", name, patch, WriteOptions::default()).await.unwrap();
    let options = WriteOptions::default();
    let patch = Patch::merge(json!({ "spec": { "size": 2 } })).unwrap();
    bench.engine.patch(WIDGETS, "default", "a", patch, options.clone()).await.unwrap();
    let told = options.fields.warnings.take();
    assert_eq!(told, ["spec.color: Invalid value: \"blue\": blue is out"]);
    let refused = bench.widget("b", json!({ "color": "blue" })).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
}

#[tokio::test]
async fn strictness_is_the_clients_choice() {
    let bench = bench().await;
    bench.define(crd("widgets", "Widget", widget_spec())).await.unwrap();
    let object = json!({ "metadata": { "name": "a", "bogus": 1 }, "x": 1,
        "spec": { "size": 1, "sise": 2 } });
    let options = |strictness| WriteOptions {
        dry_run: true,
        fields: FieldValidation {
            strictness,
            found: vec!["duplicate field \"spec.size\"".to_owned()],
            ..FieldValidation::default()
        },
        ..WriteOptions::default()
    };
    let create = |options| bench.engine.create(WIDGETS, "default", object.clone(), options);
    let strict = create(options(Strictness::Strict)).await.unwrap_err();
    assert_eq!(
        strict.message,
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: \
         duplicate field \"spec.size\", unknown field \"metadata.bogus\", unknown field \
         \"spec.sise\", unknown field \"x\""
    );
    assert_eq!(strict.reason, Reason::BadRequest);
    let warned = options(Strictness::Warn);
    let made = create(warned.clone()).await.unwrap();
    assert_eq!(made["spec"], json!({ "size": 1, "color": "red" }));
    assert!(made.get("x").is_none() && made["metadata"].get("bogus").is_none());
    let warnings = warned.fields.warnings.take();
    assert_eq!(warnings.len(), 4);
    assert_eq!(warnings[2], "unknown field \"spec.sise\"");
    let ignored = options(Strictness::Ignore);
    create(ignored.clone()).await.unwrap();
    assert!(ignored.fields.warnings.take().is_empty());
    // A patch is validated by its result.
    bench.widget("b", json!({ "size": 1 })).await.unwrap();
    let patch = Patch::merge(json!({ "spec": { "sise": 1 } })).unwrap();
    let mut strict = options(Strictness::Strict);
    strict.fields.found.clear();
    let refused = bench.engine.patch(WIDGETS, "default", "b", patch, strict).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
    assert!(refused.message.starts_with(" \"\" is invalid: patch: Invalid value: \"{"));
    assert!(refused.message.ends_with("}\": strict decoding error: unknown field \"spec.sise\""));
}

#[tokio::test]
async fn a_changed_schema_holds_for_what_is_there() {
    let bench = bench().await;
    let made = bench.define(crd("widgets", "Widget", widget_spec())).await.unwrap();
    bench.widget("a", json!({ "size": 1 })).await.unwrap();
    let mut changed = made.clone();
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let fields = changed.pointer_mut(fields).unwrap();
    fields["shape"] = json!({ "type": "string", "default": "round" });
    fields["size"]["minimum"] = json!(5);
    let mut older = changed["spec"]["versions"][0].clone();
    (older["name"], older["storage"]) = (json!("v1alpha1"), json!(false));
    (older["deprecated"], older["deprecationWarning"]) = (json!(true), json!("use v1"));
    changed["spec"]["versions"].as_array_mut().unwrap().push(older);
    let options = WriteOptions::default();
    bench.engine.update(CRDS, "", "widgets.example.net", changed, options).await.unwrap();
    // New defaults apply to stored objects; new validation rules do not block their update.
    let widget = bench.engine.get(WIDGETS, "default", "a").await.unwrap();
    assert_eq!(widget["spec"], json!({ "size": 1, "color": "red", "shape": "round" }));
    let older = format!("{WIDGETS}@v1alpha1");
    let read = bench.engine.get(&older, "default", "a").await.unwrap();
    assert_eq!(read["apiVersion"], "example.net/v1alpha1");
    let patch = Patch::merge(json!({ "spec": { "color": "blue" } })).unwrap();
    let options = WriteOptions::default();
    let patched = bench.engine.patch(&older, "default", "a", patch, options).await.unwrap();
    assert_eq!((&patched["spec"]["size"], &patched["spec"]["color"]), (&json!(1), &json!("blue")));
    assert_eq!(patched["apiVersion"], "example.net/v1alpha1");
    let list = bench.engine.list(WIDGETS, None, ListOptions::default()).await.unwrap();
    assert_eq!(list.items[0]["apiVersion"], "example.net/v1");
    let registry = bench.engine.registry();
    assert_eq!(registry.by_id(&older).unwrap().deprecated.as_deref(), Some("use v1"));
}

#[tokio::test]
async fn a_status_is_checked_too() {
    let bench = bench().await;
    bench.define(crd("widgets", "Widget", widget_spec())).await.unwrap();
    let mut widget = bench.widget("a", json!({ "size": 1 })).await.unwrap();
    let write = |object: Value| {
        bench.engine.update(WIDGETS, "default", "a", object, WriteOptions::status())
    };
    widget["status"] = json!({ "phase": 3 });
    let refused = write(widget.clone()).await.unwrap_err();
    assert_eq!((refused.reason, refused.details.causes.len()), (Reason::Invalid, 1));
    widget["status"] = json!({ "phase": "on", "extra": true });
    let written = write(widget).await.unwrap();
    assert_eq!(written["status"], json!({ "phase": "on" }));
}

#[tokio::test]
async fn a_kind_goes_with_its_objects() {
    let bench = bench().await;
    bench.define(crd("widgets", "Widget", widget_spec())).await.unwrap();
    for name in ["a", "b"] {
        bench.widget(name, json!({ "size": 1 })).await.unwrap();
    }
    let held = json!({ "metadata": { "name": "held", "finalizers": ["example.net/hold"] } });
    bench.create(WIDGETS, held).await.unwrap();
    let task = tokio::spawn(crate::engine::crd_finalizer::run(bench.engine.clone()));
    let options = DeleteOptions::default();
    let deleted = bench.engine.delete(CRDS, "", "widgets.example.net", options).await.unwrap();
    let Deleted::Finalizing(gone) = deleted else { panic!("it waits for its objects") };
    assert_eq!(gone["metadata"]["finalizers"], json!([crds::FINALIZER]));
    assert_eq!(condition(&gone, "Terminating")["reason"], "InstanceDeletionPending");
    assert_eq!(reason(bench.widget("c", json!({})).await), Reason::MethodNotAllowed);
    let until = |left: usize| async move {
        loop {
            let list = bench.engine.list(WIDGETS, None, ListOptions::default()).await;
            if list.map_or(0, |list| list.items.len()) == left {
                return bench;
            }
            tokio::task::yield_now().await;
        }
    };
    let bench = tokio::time::timeout(PATIENCE, until(1)).await.unwrap();
    let patch = Patch::merge(json!({ "metadata": { "finalizers": null } })).unwrap();
    let options = WriteOptions::default();
    bench.engine.patch(WIDGETS, "default", "held", patch, options).await.unwrap();
    let gone = async {
        while bench.engine.registry().by_id(WIDGETS).is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
    assert_eq!(reason(bench.engine.get(CRDS, "", "widgets.example.net").await), Reason::NotFound);
    // The name is free again after the deletion.
    bench.define(crd("widgets", "Widget", widget_spec())).await.unwrap();
    let list = bench.engine.list(WIDGETS, None, ListOptions::default()).await.unwrap();
    assert_eq!(list.items, [] as [Value; 0]);
    task.abort();
}

#[tokio::test]
async fn names_are_given_to_who_comes_first_and_free_with_it() {
    let bench = bench().await;
    let task = tokio::spawn(crate::engine::crd_finalizer::run(bench.engine.clone()));
    bench.define(crd("widgets", "Widget", widget_spec())).await.unwrap();
    let second = bench.define(crd("gadgets", "Widget", widget_spec())).await.unwrap();
    assert_eq!(condition(&second, "NamesAccepted")["reason"], "ListKindConflict");
    assert_eq!(condition(&second, "Established")["status"], "False");
    assert!(bench.engine.registry().by_id("example.net/gadgets").is_none());
    let options = DeleteOptions::default();
    bench.engine.delete(CRDS, "", "widgets.example.net", options).await.unwrap();
    let served = async {
        while bench.engine.registry().by_id("example.net/gadgets").is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, served).await.unwrap();
    task.abort();
}

#[tokio::test]
async fn definitions_that_make_no_kind_are_refused() {
    let bench = bench().await;
    let good = crd("widgets", "Widget", widget_spec());
    let with = |pointer: &str, value: Value| {
        let mut crd = good.clone();
        *crd.pointer_mut(pointer).unwrap() = value;
        crd
    };
    for (bad, field) in [
        (with("/metadata/name", json!("other.example.net")), "metadata.name"),
        (with("/spec/scope", json!("World")), "spec.scope"),
        (with("/spec/versions/0/storage", json!(false)), "spec.versions"),
        (with("/spec/versions/0/schema/openAPIV3Schema/type", json!("string")), "spec."),
    ] {
        let refused = bench.define(bad).await.unwrap_err();
        assert_eq!(refused.reason, Reason::Invalid, "{field}");
        let told = refused.details.causes.iter().any(|cause| cause.field.starts_with(field));
        assert!(told, "{field}: {refused}");
    }
}

#[tokio::test]
async fn compiled_in_kinds_are_there_to_read() {
    let bench = bench().await;
    let name = "hardware.tinkerbell.org";
    let crd = bench.engine.get(CRDS, "", name).await.unwrap();
    assert_eq!(condition(&crd, "Established")["status"], "True");
    assert_eq!(condition(&crd, "NamesAccepted")["status"], "True");
    // An installer's other descriptions of the same fields change only the metadata.
    let patch = |patch: Value| {
        let patch = Patch::merge(patch).unwrap();
        bench.engine.patch(CRDS, "", name, patch, WriteOptions::default())
    };
    let mut versions = crd["spec"]["versions"].clone();
    let at = "/0/schema/openAPIV3Schema";
    versions.pointer_mut(at).unwrap()["description"] = json!("other words");
    let wanted = json!({ "metadata": { "annotations": { "a": "b" } },
        "spec": { "versions": versions } });
    let patched = patch(wanted).await.unwrap();
    assert_eq!(patched["spec"], crd["spec"]);
    assert_eq!(patched["metadata"]["annotations"], json!({ "a": "b" }));
    assert_eq!(patched["metadata"]["generation"], crd["metadata"]["generation"]);
    versions.pointer_mut(at).unwrap()["properties"]["more"] = json!({ "type": "string" });
    let patched = patch(json!({ "spec": { "versions": versions } })).await.unwrap();
    assert_eq!(patched["spec"], crd["spec"]);
    let refused = patch(json!({ "spec": { "scope": "Cluster" } })).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Forbidden);
    assert!(refused.message.ends_with("does not have spec.scope \"Cluster\""));
    let deleted = bench.engine.delete(CRDS, "", name, DeleteOptions::default()).await;
    assert_eq!(deleted.unwrap_err().reason, Reason::Forbidden);
}

#[tokio::test]
async fn the_older_version_of_a_kind_is_the_same_object() {
    let bench = bench().await;
    let resource = "infrastructure.cluster.x-k8s.io/tinkerbellmachines";
    let older = format!("{resource}@v1alpha4");
    let spec = json!({ "hardwareSelector": { "plan": "NUC" }, "osImage": "ubuntu-20.04" });
    let made = bench.create(&older, json!({ "metadata": { "name": "a" }, "spec": spec })).await;
    assert_eq!(made.unwrap()["apiVersion"], "infrastructure.cluster.x-k8s.io/v1alpha4");
    let read = bench.engine.get(resource, "default", "a").await.unwrap();
    assert_eq!(read["apiVersion"], "infrastructure.cluster.x-k8s.io/v1beta1");
    assert_eq!(read["spec"], spec);
    let unknown = format!("{resource}@v1alpha3");
    assert_eq!(reason(bench.engine.get(&unknown, "default", "a").await), Reason::NotFound);
}

#[tokio::test]
async fn events_of_both_groups_are_one_object() {
    let bench = bench().await;
    let newer = "events.k8s.io/events";
    let event = json!({ "metadata": { "name": "a" }, "note": "on", "reason": "On",
        "type": "Normal", "eventTime": "2026-11-20T10:00:00.000000Z",
        "regarding": { "name": "nuc-1", "namespace": "default" } });
    bench.create(newer, event).await.unwrap();
    let core = bench.engine.get("/events", "default", "a").await.unwrap();
    assert_eq!((&core["apiVersion"], &core["message"]), (&json!("v1"), &json!("on")));
    assert_eq!(core["involvedObject"]["name"], "nuc-1");
    let list = bench.engine.list(newer, Some("default"), ListOptions::default()).await.unwrap();
    assert_eq!(list.items[0]["apiVersion"], "events.k8s.io/v1");
    assert_eq!(list.items[0]["note"], "on");
}
