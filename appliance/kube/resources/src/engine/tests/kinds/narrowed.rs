//! Tests of objects whose schema has lost a field. Expected results are those of kube-apiserver
//! 1.35.

use std::sync::Arc;

use schema::Schema;
use serde_json::{Value, json};

use super::super::super::{
    Configuration, DeleteOptions, Engine, FieldValidation, Part, Patch, Strictness, WatchOptions,
    WriteOptions,
};
use super::super::{Bench, HARDWARE, bench, next};
use super::changing::store;
use super::{CRDS, WIDGETS, crd};
use crate::definition::{ResourceDefinition, StoredForm};
use crate::status_error::Reason;
use crate::{Registry, StatusError, builtin};

/// Writer of the object `a` of one kind.
struct Writes<'a> {
    engine: &'a Engine,
    resource: &'a str,
    kind: (&'a str, &'a str),
}

fn by(manager: &str) -> WriteOptions {
    WriteOptions { manager: Some(manager.to_owned()), ..WriteOptions::default() }
}

fn strictly(manager: &str) -> WriteOptions {
    let strict = FieldValidation { strictness: Strictness::Strict, ..FieldValidation::default() };
    WriteOptions { fields: strict, ..by(manager) }
}

fn warned(manager: &str) -> WriteOptions {
    let warn = FieldValidation { strictness: Strictness::Warn, ..FieldValidation::default() };
    WriteOptions { fields: warn, ..by(manager) }
}

fn managers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["manager"].as_str()).collect()
}

impl Writes<'_> {
    async fn apply(
        &self,
        fields: Value,
        part: Part,
        options: WriteOptions,
    ) -> Result<Value, StatusError> {
        let mut object = fields;
        let (api_version, kind) = self.kind;
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        object["metadata"]["name"] = json!("a");
        let config = Configuration { object, force: false, uncreatable: None };
        let options = WriteOptions { part, ..options };
        let applied = self.engine.apply(self.resource, "default", "a", config, options).await;
        applied.map(|applied| applied.object)
    }

    async fn merge(&self, patch: Value, options: WriteOptions) -> Result<Value, StatusError> {
        let patch = Patch::merge(patch).unwrap();
        self.engine.patch(self.resource, "default", "a", patch, options).await
    }

    /// Creates an object with `spec` and `status` owned by two managers.
    async fn begin(&self, spec: Value, status: Value) {
        self.apply(json!({ "spec": spec }), Part::Main, by("gitops")).await.unwrap();
        self.apply(json!({ "status": status }), Part::Status, by("ctl")).await.unwrap();
    }

    /// Makes all writes that an earlier release refused or that lost fields. `gone` is the field
    /// that the schema lost; `kept` is a remaining field.
    async fn go_on(&self, kept: &str, status: Value) {
        let read = self.engine.get(self.resource, "default", "a").await.unwrap();
        assert_eq!(read["spec"], json!({ kept: "x" }));
        let mut watch =
            self.engine.watch(self.resource, None, WatchOptions::default()).await.unwrap();
        let mut text = Vec::new();
        watch.next_raw().await.unwrap().unwrap().write(&mut text).unwrap();
        let text: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(text, read);
        let options = warned("ctl");
        let ctl = WriteOptions { part: Part::Status, ..options.clone() };
        let written = self.merge(json!({ "status": status }), ctl).await.unwrap();
        assert_eq!(options.fields.warnings.take(), [] as [String; 0]);
        assert!(managers(&written).contains(&"gitops"), "{written}");
        let label = json!({ "metadata": { "labels": { "a": "b" } } });
        let labelled = self.merge(label, strictly("kubectl-label")).await.unwrap();
        assert_eq!(labelled["metadata"]["generation"], 1);
        assert!(managers(&labelled).contains(&"gitops"), "{labelled}");
        // Owners are still known: another manager gets a conflict, the owner can write.
        let other = self.apply(json!({ "spec": { kept: "y" } }), Part::Main, by("other")).await;
        let other = other.unwrap_err();
        assert_eq!(other.reason, Reason::Conflict);
        assert!(other.message.contains("conflict with \"gitops\""), "{}", other.message);
        let spec = json!({ "spec": { kept: "z" } });
        let applied = self.apply(spec, Part::Main, by("gitops")).await.unwrap();
        assert_eq!(applied["spec"], json!({ kept: "z" }));
        // A `gone` field in the request is an unknown field, as usual.
        let strict = self.merge(json!({ "spec": { "gone": "x" } }), strictly("me")).await;
        assert!(strict.unwrap_err().message.contains("unknown field \"spec.gone\""));
    }
}

fn spec_of(fields: &[&str]) -> Value {
    let fields: serde_json::Map<_, _> =
        fields.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    json!({ "type": "object", "properties": fields })
}

async fn redefine(bench: &Bench, crd: &Value) {
    let patch = Patch::merge(json!({ "spec": crd["spec"] })).unwrap();
    let name = "widgets.example.net";
    bench.engine.patch(CRDS, "", name, patch, WriteOptions::default()).await.unwrap();
}

#[tokio::test]
async fn a_definition_that_drops_a_field_breaks_no_write_and_forgets_no_manager() {
    let bench = bench().await;
    bench.define(crd("widgets", "Widget", spec_of(&["size", "gone"]))).await.unwrap();
    let kind = ("example.net/v1", "Widget");
    let widgets = Writes { engine: &bench.engine, resource: WIDGETS, kind };
    widgets.begin(json!({ "size": "x", "gone": "g" }), json!({ "phase": "on" })).await;
    redefine(&bench, &crd("widgets", "Widget", spec_of(&["size"]))).await;
    widgets.go_on("size", json!({ "phase": "off" })).await;
}

#[tokio::test]
async fn a_deleted_object_is_shown_without_the_field_that_its_kind_has_lost() {
    let bench = bench().await;
    bench.define(crd("widgets", "Widget", spec_of(&["size", "gone"]))).await.unwrap();
    bench.widget("a", json!({ "size": "x", "gone": "g" })).await.unwrap();
    redefine(&bench, &crd("widgets", "Widget", spec_of(&["size"]))).await;
    let after = Some(bench.engine.revision());
    let options = WatchOptions { after, ..WatchOptions::default() };
    let mut watch = bench.engine.watch(WIDGETS, None, options).await.unwrap();
    let mut raw = bench
        .engine
        .watch(WIDGETS, None, WatchOptions { after, ..Default::default() })
        .await
        .unwrap();
    bench.engine.delete(WIDGETS, "default", "a", DeleteOptions::default()).await.unwrap();
    assert_eq!(next(&mut watch).await.unwrap().object["spec"], json!({ "size": "x" }));
    let mut text = Vec::new();
    raw.next_raw().await.unwrap().unwrap().write(&mut text).unwrap();
    let text: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(text["spec"], json!({ "size": "x" }));
}

/// Returns a registry in which Hardware has a field of an older release, unknown to this release.
fn older_hardware() -> Registry {
    let registry = builtin::registry().unwrap();
    let older = registry.all().iter().map(|one| {
        let mut one = ResourceDefinition::clone(one);
        if one.id() == HARDWARE {
            let mut source = one.schema.as_ref().unwrap().source().clone();
            source["properties"]["spec"]["properties"]["gone"] = json!({ "type": "string" });
            let schema = Arc::new(Schema::parse(&source).unwrap());
            one.stored_form = Some(StoredForm::new(schema.clone(), 0));
            (one.schema, one.validate) = (Some(schema), None);
        }
        one
    });
    Registry::new(older.collect()).unwrap()
}

#[tokio::test]
async fn a_release_that_drops_a_field_of_a_compiled_in_kind_breaks_no_write() {
    let bench = bench().await;
    let store_of = || bench.engine.inner.store.clone();
    let clock = || Arc::new(bench.clock.clone());
    let older = Engine::new(store_of(), older_hardware(), clock());
    let kind = ("tinkerbell.org/v1alpha1", "Hardware");
    let hardware = Writes { engine: &older, resource: HARDWARE, kind };
    hardware.begin(json!({ "userData": "x", "gone": "g" }), json!({ "state": "on" })).await;
    // The newer release starts with the older release's definition in the store.
    let name = "hardware.tinkerbell.org";
    let mut published = older.get(CRDS, "", name).await.unwrap();
    published["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("older");
    store(&older, name, Some(&published)).await;
    let newer = Engine::new(store_of(), builtin::registry().unwrap(), clock());
    newer.ensure_permanent().await.unwrap();
    let hardware = Writes { engine: &newer, resource: HARDWARE, kind };
    hardware.go_on("userData", json!({ "state": "off" })).await;
}

#[tokio::test]
async fn an_apply_in_the_smaller_version_of_a_definition_is_no_failure() {
    let bench = bench().await;
    let mut wide = crd("widgets", "Widget", spec_of(&["size", "more"]));
    let mut small =
        crd("widgets", "Widget", spec_of(&["size", "less"]))["spec"]["versions"][0].take();
    (small["name"], small["storage"]) = (json!("v1beta1"), json!(false));
    wide["spec"]["versions"].as_array_mut().unwrap().push(small);
    bench.define(wide).await.unwrap();
    bench.widget("a", json!({ "size": "x", "more": "m" })).await.unwrap();
    let resource = format!("{WIDGETS}@v1beta1");
    let kind = ("example.net/v1beta1", "Widget");
    let small = Writes { engine: &bench.engine, resource: &resource, kind };
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    let applied = small.apply(labels.clone(), Part::Main, by("gitops")).await.unwrap();
    assert_eq!(applied["spec"], json!({ "size": "x", "more": "m" }));
    small.merge(json!({ "metadata": { "labels": { "c": "d" } } }), strictly("me")).await.unwrap();
    // The fields are those of the request's version.
    let unknown = small.apply(json!({ "spec": { "more": "n" } }), Part::Main, by("gitops")).await;
    let unknown = unknown.unwrap_err().message;
    assert!(unknown.contains("failed to create typed patch object"), "{unknown}");
    // Fields that the stored version lacks are not stored, and the client is warned.
    let options = warned("me");
    let less = json!({ "spec": { "less": "l", "size": "y" } });
    let written = small.merge(less, options.clone()).await.unwrap();
    assert_eq!(written["spec"], json!({ "size": "y", "more": "m" }));
    let told = "unknown field \"spec.less\" in version \"v1\", in which objects are stored";
    assert_eq!(options.fields.warnings.take(), [told]);
}
