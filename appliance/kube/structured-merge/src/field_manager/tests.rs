//! Sequences of writes and applies.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{ApplyError, FieldManager};
use crate::managers::{Managers, Operation};
use crate::path::Path;
use crate::schema::Schema;
use crate::set::Set;

const V1: &str = "example.com/v1";
const V2: &str = "example.com/v2";

/// Object that is written repeatedly, at intervals of one second.
struct Life {
    schemas: BTreeMap<String, Arc<Schema>>,
    live: Option<Value>,
    now: i64,
}

impl Life {
    fn new() -> Self {
        let model = json!({"type": "object", "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {
                "name": {"type": "string"}, "uid": {"type": "string"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
                "managedFields": {"type": "array", "items": {"type": "object"}}}},
            "spec": {"type": "object", "properties": {
                "a": {"type": "integer"}, "b": {"type": "integer"},
                "texts": {"type": "object", "additionalProperties": {"type": "string"}},
                "set": {"type": "array", "x-kubernetes-list-type": "set",
                    "items": {"type": "string"}},
                "list": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["id"],
                    "items": {"type": "object", "properties": {
                        "id": {"type": "string"}, "x": {"type": "integer"},
                        "y": {"type": "integer"}}}}}},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}
        }});
        let schema = Schema::from_openapi(&BTreeMap::from([("T".to_owned(), model)]), "T").unwrap();
        let schema = Arc::new(schema);
        let schemas = [V1, V2].map(|version| (version.to_owned(), schema.clone())).into();
        Self { schemas, live: None, now: 0 }
    }

    fn manager<'a>(&'a self, version: &'a str, part: &'a str, reset: &'a Set) -> FieldManager<'a> {
        let schemas = &self.schemas;
        FieldManager { api_version: version, kind: "T", subresource: part, schemas, reset }
    }

    fn keep(&mut self, mut object: Value) {
        object["metadata"]["uid"] = json!("u");
        self.live = Some(object);
    }

    fn try_apply(
        &mut self,
        version: &str,
        manager: &str,
        spec: Value,
        force: bool,
    ) -> Result<(), ApplyError> {
        self.now += 1;
        let config = object(version, spec);
        let now = Timestamp::from_second(self.now).unwrap();
        let reset = Set::of([Path::fields(&["status"])]);
        if let Some(live) = &mut self.live {
            live["apiVersion"] = json!(version);
        }
        let applied = self.manager(version, "", &reset).apply(
            self.live.as_ref(),
            &config,
            manager,
            force,
            now,
        )?;
        self.keep(applied);
        Ok(())
    }

    fn apply(&mut self, manager: &str, spec: Value) {
        self.try_apply(V1, manager, spec, false).unwrap();
    }

    fn update(&mut self, manager: &str, change: impl FnOnce(&mut Value)) {
        self.now += 1;
        let mut new = self.live.clone().unwrap_or_else(|| object(V1, json!({})));
        change(&mut new);
        let now = Timestamp::from_second(self.now).unwrap();
        let reset = Set::of([Path::fields(&["status"])]);
        self.manager(V1, "", &reset).update(self.live.as_ref(), &mut new, manager, now).unwrap();
        self.keep(new);
    }

    fn spec(&self) -> &Value {
        &self.live.as_ref().unwrap()["spec"]
    }

    fn entries(&self) -> &Value {
        &self.live.as_ref().unwrap()["metadata"]["managedFields"]
    }

    fn owned(&self, manager: &str, operation: Operation) -> Value {
        Managers::read(self.entries()).unwrap().owned(manager, operation).to_fields_v1()
    }
}

fn object(version: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": "T", "metadata": {"name": "n"}, "spec": spec})
}

#[test]
fn a_create_by_apply_owns_what_it_says() {
    let mut life = Life::new();
    life.apply("me", json!({"a": 1, "texts": {"k": "v"}}));
    assert_eq!(
        *life.entries(),
        json!([{
            "manager": "me", "operation": "Apply", "apiVersion": V1,
            "time": "1970-01-01T00:00:01Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:a": {}, "f:texts": {"f:k": {}}}},
        }])
    );
    let before = life.live.clone();
    life.apply("me", json!({"a": 1, "texts": {"k": "v"}}));
    assert_eq!(life.live, before, "an apply that changes nothing leaves the time, too");
}

#[test]
fn what_is_applied_no_more_goes_unless_another_owns_it() {
    let mut life = Life::new();
    life.apply("one", json!({"a": 1, "b": 1, "set": ["x", "y"], "list": [{"id": "i", "x": 1}]}));
    life.apply("two", json!({"b": 1, "set": ["y"], "list": [{"id": "i", "y": 2}]}));
    life.apply("one", json!({}));
    assert_eq!(*life.spec(), json!({"b": 1, "set": ["y"], "list": [{"id": "i", "y": 2}]}));
    life.apply("two", json!({"a": 3}));
    assert_eq!(*life.spec(), json!({"a": 3}));
}

#[test]
fn what_a_plain_write_put_beside_stays() {
    let mut life = Life::new();
    life.apply("one", json!({"texts": {"k": "v"}}));
    life.update("w", |new| new["spec"]["texts"]["other"] = json!("x"));
    life.apply("one", json!({}));
    assert_eq!(*life.spec(), json!({"texts": {"other": "x"}}));
    assert_eq!(life.owned("w", Operation::Update), json!({"f:spec": {"f:texts": {"f:other": {}}}}));
}

#[test]
fn conflicts_name_owner_and_field() {
    let mut life = Life::new();
    life.apply("one", json!({"a": 1}));
    life.update("w", |new| new["spec"]["b"] = json!(1));
    let refused = life.try_apply(V1, "two", json!({"a": 2}), false).unwrap_err();
    let one = "Apply failed with 1 conflict: conflict with \"one\": .spec.a";
    assert_eq!(refused.to_string(), one);
    let refused = life.try_apply(V1, "two", json!({"a": 2, "b": 2}), false).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.a\nconflicts with \"w\" \
         using example.com/v1:\n- .spec.b"
    );
    let ApplyError::Conflicts(conflicts) = refused else { panic!("no conflicts") };
    assert_eq!(conflicts.listed()[1].message(), "conflict with \"w\" using example.com/v1");
    life.try_apply(V1, "two", json!({"a": 2, "b": 2}), true).unwrap();
    assert_eq!(*life.spec(), json!({"a": 2, "b": 2}));
    assert_eq!(life.entries().as_array().unwrap().len(), 1);
}

#[test]
fn conflicts_without_end_are_counted() {
    let mut life = Life::new();
    let texts = |text: &str| {
        let fields = (0..5_000).map(|at| (format!("{at:02000}"), json!(text)));
        json!({"texts": fields.collect::<serde_json::Map<_, _>>()})
    };
    life.apply("one", texts("x"));
    let refused = life.try_apply(V1, "two", texts("y"), false).unwrap_err();
    let text = refused.to_string();
    assert!(text.starts_with("Apply failed with 5000 conflicts: conflicts with \"one\":\n"));
    assert!(text.ends_with("\nand 4900 more"), "{}", &text[text.len() - 50..]);
    assert!(text.len() < 200_000, "{} bytes", text.len());
    let ApplyError::Conflicts(conflicts) = refused else { panic!("no conflicts") };
    assert_eq!(conflicts.listed().len(), 100);
}

#[test]
fn agreeing_is_no_conflict_and_makes_both_owners() {
    let mut life = Life::new();
    life.apply("one", json!({"a": 1}));
    life.apply("two", json!({"a": 1}));
    let spec = json!({"f:spec": {"f:a": {}}});
    assert_eq!(life.owned("one", Operation::Apply), spec);
    assert_eq!(life.owned("two", Operation::Apply), spec);
    life.update("w", |new| new["spec"]["a"] = json!(2));
    assert_eq!(life.owned("w", Operation::Update), spec);
    assert_eq!(life.entries().as_array().unwrap().len(), 1);
}

#[test]
fn removed_fields_leave_every_owner() {
    let mut life = Life::new();
    life.apply("one", json!({"a": 1, "b": 1}));
    life.update("w", |new| new["spec"] = json!({"b": 1}));
    assert_eq!(life.owned("one", Operation::Apply), json!({"f:spec": {"f:b": {}}}));
    assert_eq!(life.entries().as_array().unwrap().len(), 1);
}

#[test]
fn an_untracked_object_is_owned_from_its_first_apply() {
    let mut life = Life::new();
    life.keep(object(V1, json!({"a": 1, "b": 1})));
    life.update("w", |new| new["spec"]["b"] = json!(2));
    assert_eq!(*life.entries(), Value::Null);
    life.apply("one", json!({"a": 1}));
    let spec = json!({"f:spec": {".": {}, "f:a": {}, "f:b": {}}});
    assert_eq!(life.owned("before-first-apply", Operation::Update), spec);
    assert!(life.entries()[0].get("time").is_none(), "it changed nothing");
}

#[test]
fn clients_reset_and_repair_the_entries() {
    let mut life = Life::new();
    life.apply("one", json!({"a": 1}));
    let entries = life.entries().clone();
    life.update("w", |new| new["metadata"]["managedFields"] = json!(null));
    assert_eq!(*life.entries(), entries);
    life.update("w", |new| new["metadata"]["managedFields"] = json!([{"operation": "No"}]));
    assert_eq!(*life.entries(), entries);
    life.update("w", |new| new["metadata"]["managedFields"][0]["manager"] = json!("two"));
    assert_eq!(life.owned("two", Operation::Apply), json!({"f:spec": {"f:a": {}}}));
    life.update("w", |new| new["metadata"]["managedFields"] = json!([{}]));
    assert_eq!(*life.entries(), Value::Null);
}

#[test]
fn a_subresource_owns_its_own() {
    let mut life = Life::new();
    life.update("w", |new| new["status"] = json!({"ready": false}));
    assert_eq!(life.owned("w", Operation::Update), json!({"f:spec": {}}));
    life.update("w", |new| new["spec"]["a"] = json!(1));
    let reset = Set::of([Path::fields(&["spec"])]);
    let mut new = life.live.clone().unwrap();
    new["status"] = json!({"ready": true});
    new["spec"]["a"] = json!(2);
    new["metadata"]["managedFields"] = json!([]);
    let now = Timestamp::from_second(9).unwrap();
    life.manager(V1, "status", &reset).update(life.live.as_ref(), &mut new, "s", now).unwrap();
    let entries = new["metadata"]["managedFields"].as_array().unwrap();
    let status = entries.iter().find(|entry| entry["manager"] == "s").unwrap();
    assert_eq!(status["subresource"], "status");
    assert_eq!(status["fieldsV1"], json!({"f:status": {"f:ready": {}}}));
}

#[test]
fn versions_share_an_applier_and_forget_what_is_not_served() {
    let mut life = Life::new();
    life.apply("one", json!({"a": 1, "b": 1}));
    life.try_apply(V2, "one", json!({"a": 1}), false).unwrap();
    assert_eq!(*life.spec(), json!({"a": 1}));
    assert_eq!(life.entries()[0]["apiVersion"], V2);
    life.schemas.remove(V2);
    life.update("w", |new| {
        new["apiVersion"] = json!(V1);
        new["spec"]["b"] = json!(2);
    });
    let entries = life.entries().as_array().unwrap();
    assert!(entries.iter().all(|entry| entry["apiVersion"] == V1), "{entries:?}");
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_client() {
    let mut life = Life::new();
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let before = json!({"apiVersion": V1, "kind": "T", "spec": {"a": 1, "b": 1}});
    life.update("kubectl-client-side-apply", |new| {
        new["spec"] = json!({"a": 1, "b": 1});
        new["metadata"]["annotations"] = json!({annotation: before.to_string()});
    });
    life.update("w", |new| new["spec"]["b"] = json!(5));
    life.apply("kubectl", json!({"a": 2}));
    assert_eq!(*life.spec(), json!({"a": 2, "b": 5}));
    let kept = life.live.as_ref().unwrap()["metadata"]["annotations"][annotation].clone();
    let config = object(V1, json!({"a": 2}));
    assert_eq!(kept.as_str().unwrap(), format!("{config}\n"));
    let refused = life.try_apply(V1, "kubectl", json!({"a": 3, "b": 3}), false).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Apply failed with 1 conflict: conflict with \"w\" using example.com/v1: .spec.b"
    );
}

#[test]
fn configurations_of_another_kind_or_shape_are_refused() {
    let life = Life::new();
    let reset = Set::default();
    let manager = life.manager(V1, "", &reset);
    let now = Timestamp::UNIX_EPOCH;
    let apply = |config: &Value| manager.apply(None, config, "me", false, now).unwrap_err();
    let wrong = apply(&object(V2, json!({})));
    let sentence = "invalid object type: example.com/v2, Kind=T";
    assert_eq!(wrong, ApplyError::BadRequest(sentence.to_owned()));
    assert!(matches!(apply(&json!([])), ApplyError::BadRequest(_)));
    let mut managed = object(V1, json!({}));
    managed["metadata"]["managedFields"] = json!([]);
    let sentence = "metadata.managedFields must be nil";
    assert_eq!(apply(&managed), ApplyError::BadRequest(sentence.to_owned()));
    let sentence = "failed to create typed patch object (/n; example.com/v1, Kind=T): .spec.c: \
                    field not declared in schema";
    assert_eq!(apply(&object(V1, json!({"c": 1}))), ApplyError::Failed(sentence.to_owned()));
    let twice = object(V1, json!({"set": ["a", "a"]}));
    assert!(apply(&twice).to_string().ends_with("duplicate entries for key [=\"a\"]"));
}
