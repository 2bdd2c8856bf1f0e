//! Tests that text and tree form of an object are equal.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use store::Stored;

use super::{write_item, write_served};
use crate::builtin;
use crate::definition::ResourceDefinition;
use crate::object::{decode, encode};

fn both(definition: &ResourceDefinition, object: &Value) -> (Value, Value) {
    let value: Arc<[u8]> = encode(definition, object).unwrap().into();
    let stored = Stored { revision: 42, value };
    let mut text = Vec::new();
    write_served(definition, &stored, stored.revision, &mut text).unwrap();
    (serde_json::from_slice(&text).unwrap(), decode(definition, &stored).unwrap())
}

#[test]
fn traps_in_values_are_passed_over() {
    let registry = builtin::registry().unwrap();
    let hardware = registry.by_id("tinkerbell.org/hardware").unwrap();
    let mut hardware = hardware.as_ref().clone();
    hardware.stored_form = hardware.stored_form.map(|form| form.since(41));
    let mut served = hardware.clone();
    served.version = "v9".to_owned();
    for metadata in [json!({}), json!({ "name": "a", "labels": { "metadata": "{" } })] {
        let object = json!({
            "apiVersion": "tinkerbell.org/v1alpha1",
            "aaa": ["metadata", "\"metadata\":{", { "metadata": {}, "apiVersion": "x" }, "\\"],
            "b": "metadata", "c\"": 1, "kind": "Hardware", "metadata": metadata,
        });
        for definition in [&hardware, &served] {
            let (text, tree) = both(definition, &object);
            assert_eq!(text, tree);
            assert_eq!(text["metadata"]["resourceVersion"], "42");
            assert_eq!(text["apiVersion"], definition.api_version());
        }
    }
}

#[test]
fn items_of_kubernetes_own_kinds_do_not_repeat_what_the_list_says() {
    let registry = builtin::registry().unwrap();
    let item = |id: &str, object: &Value| {
        let definition = registry.by_id(id).unwrap();
        let value: Arc<[u8]> = encode(definition, object).unwrap().into();
        let mut text = b"[".to_vec();
        write_item(definition, &Stored { revision: 42, value }, &mut text).unwrap();
        text.push(b']');
        serde_json::from_slice::<Value>(&text).unwrap()[0].clone()
    };
    let mut object = json!({
        "apiVersion": "v1", "data": { "kind": "x", "apiVersion": "y" }, "kind": "Secret",
        "metadata": { "name": "a" },
    });
    let expected = json!({
        "data": object["data"], "metadata": { "name": "a", "resourceVersion": "42" },
    });
    assert_eq!(item("/secrets", &object), expected);
    object["kind"] = json!("Hardware");
    object["apiVersion"] = json!("tinkerbell.org/v1alpha1");
    let custom = item("tinkerbell.org/hardware", &object);
    assert_eq!((&custom["kind"], &custom["apiVersion"]), (&object["kind"], &object["apiVersion"]));
}

#[test]
fn text_and_tree_agree() {
    let registry = builtin::registry().unwrap();
    let definition = registry.by_id("/secrets").unwrap();
    proptest!(|(keys in proptest::collection::vec("[\"\\\\{}a,:é]{0,6}", 0..6))| {
        let mut object = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": {} });
        for key in keys {
            object[&key] = json!({ &key: [key, { "metadata": key }] });
        }
        object["metadata"] = json!({ "name": "x" });
        object["apiVersion"] = json!("v1");
        let (text, tree) = both(definition, &object);
        prop_assert_eq!(text, tree);
    });
}
