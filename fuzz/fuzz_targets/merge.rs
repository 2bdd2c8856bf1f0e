//! Structured merge: any object, any managed fields, any applied configuration, and any schema.

#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use fuzz::Input;
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use structured_merge::{FieldManager, Managers, PathElement, Schema, Set};

const VERSION: &str = "example.com/v1";

/// Checks that a value that was parsed is the same when it is written and parsed again.
fn round_trips(value: &Value) {
    if let Ok(set) = Set::from_fields_v1(value) {
        let written = set.to_fields_v1();
        assert_eq!(Set::from_fields_v1(&written).expect("a set that was written"), set);
        let _ = set.paths();
    }
    if let Ok(managers) = Managers::read(value) {
        let written = managers.write().unwrap_or_default();
        Managers::read(&written).expect("entries that were written");
    }
    // The JSON parser may round a fraction differently the second time.
    let text = value.as_str().filter(|text| !text.contains(['.', 'e', 'E']));
    if let Some(Ok(Some(element))) = text.map(PathElement::parse) {
        let again = PathElement::parse(&element.written()).expect("an element that was written");
        assert_eq!(again, Some(element));
    }
}

fn schema(model: &Value) -> Schema {
    let metadata = json!({
        "type": "object",
        "properties": { "managedFields": { "type": "array", "items": { "type": "object" } } },
        "additionalProperties": { "type": "string" },
    });
    let root = json!({
        "type": "object",
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "metadata": metadata,
            "spec": model,
        },
    });
    let models = BTreeMap::from([("Root".to_owned(), root), ("Spec".to_owned(), model.clone())]);
    Schema::from_openapi(&models, "Root").unwrap_or_else(|_| Schema::deduced())
}

fn object(spec: Value, entries: Value) -> Value {
    json!({
        "apiVersion": VERSION, "kind": "T",
        "metadata": { "name": "n", "uid": "u", "managedFields": entries },
        "spec": spec,
    })
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let force = input.byte() & 1 == 1;
    let mut next = || serde_json::from_slice::<Value>(input.line()).unwrap_or_default();
    let (model, live, entries, config, other) = (next(), next(), next(), next(), next());
    for value in [&model, &live, &entries, &config] {
        round_trips(value);
    }
    let schemas = BTreeMap::from([(VERSION.to_owned(), Arc::new(schema(&model)))]);
    let rules = FieldManager {
        api_version: VERSION,
        kind: "T",
        subresource: "",
        schemas: &schemas,
        reset: &Set::default(),
    };
    let now = Timestamp::UNIX_EPOCH;
    let live = object(live, entries);
    let mut config = object(config, Value::Null);
    config["metadata"] = json!({ "name": "n" });
    if let Ok(applied) = rules.apply(Some(&live), &config, "me", force, now) {
        let again = rules.apply(Some(&applied), &config, "me", false, now);
        assert_eq!(again.expect("what was just applied"), applied);
    }
    let mut new = object(other, live["metadata"]["managedFields"].clone());
    if rules.update(Some(&live), &mut new, "me", now).is_ok() {
        Managers::read(&new["metadata"]["managedFields"]).expect("entries that were written");
    }
});
