//! Conversion of OpenAPI schemas to merge schemas.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Unconvertible;
use crate::schema::{Atom, Scalar, Schema};

fn convert(model: Value) -> Result<Schema, Unconvertible> {
    let leaf = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let row =
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    let models = [("Root", model), ("x.y.Leaf", leaf), ("Row", row)];
    let models = BTreeMap::from(models.map(|(name, model)| (name.to_owned(), model)));
    Schema::from_openapi(&models, "Root")
}

fn field(schema: &Schema, name: &str) -> Atom {
    let root = schema.atom(schema.root()).map.clone().unwrap();
    schema.atom(root.fields[name].of).clone()
}

#[test]
fn words_about_lists_and_maps_are_understood() {
    let schema = convert(json!({"properties": {
        "plain": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "old": {"type": "array", "items": {"$ref": "#/x/x.y.Leaf"},
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "a"},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic"},
        "ref": {"$ref": "#/definitions/x.y.Leaf"},
        "refWhole": {"allOf": [{"$ref": "#/definitions/x.y.Leaf"}],
            "x-kubernetes-map-type": "atomic"},
        "listWhole": {"$ref": "Row", "x-kubernetes-map-type": "atomic"},
        "anything": {},
        "time": {"type": "string", "format": "date-time"},
        "bytes": {"type": ["string"], "format": "byte"},
    }}))
    .unwrap();
    let list = |name: &str| field(&schema, name).list.unwrap();
    let map = |name: &str| field(&schema, name).map.unwrap();
    assert!(list("plain").atomic && list("listWhole").atomic);
    assert!(!list("set").atomic && list("set").keys.is_empty());
    assert_eq!((list("old").atomic, list("old").keys), (false, vec!["a".to_owned()]));
    assert!(map("whole").atomic && map("refWhole").atomic && !map("ref").atomic);
    assert_eq!(map("ref").fields, map("refWhole").fields);
    assert_eq!(map("whole").element, Some(Schema::DEDUCED));
    assert_eq!(map("ref").element, None);
    let anything = field(&schema, "anything");
    assert!(anything.list.unwrap().atomic && !anything.map.unwrap().atomic);
    assert_eq!(field(&schema, "time").scalar, Some(Scalar::Untyped));
    assert_eq!(field(&schema, "bytes").scalar, Some(Scalar::String));
    // Without a type, an object may also be any other value.
    assert!(schema.atom(schema.root()).scalar.is_some());
}

#[test]
fn unknown_fields_are_kept_further_inside() {
    let schema = convert(json!({"type": "object", "properties": {
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "in": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        "shut": {"type": "object", "properties": {"a": {"type": "string"}}},
        "texts": {"type": "object", "additionalProperties": {"type": "string"}},
        "none": {"type": "object", "additionalProperties": false},
    }}))
    .unwrap();
    let open = field(&schema, "open").map.unwrap();
    assert_eq!(open.element, Some(Schema::DEDUCED));
    let inner = schema.atom(open.fields["in"].of).map.clone().unwrap();
    assert_eq!(inner.element, Some(Schema::DEDUCED));
    assert_eq!(field(&schema, "shut").map.unwrap().element, None);
    assert_eq!(field(&schema, "none").map.unwrap().element, None);
    let text = field(&schema, "texts").map.unwrap().element.unwrap();
    assert_eq!(schema.atom(text).scalar, Some(Scalar::String));
}

#[test]
fn nonsense_is_refused() {
    let inside = |model: Value| json!({"type": "object", "properties": {"x": model}});
    for (model, message) in [
        (json!({"type": "thing"}), "unrecognized type: \"thing\""),
        (json!({"type": "array"}), "`items` must be specified on arrays"),
        (json!({"$ref": "#/a/Nothing"}), "no type found matching: Nothing"),
        (json!({"x-kubernetes-list-type": "bag"}), "unknown x-kubernetes-list-type \"bag\""),
        (json!({"x-kubernetes-map-type": 1}), "unknown x-kubernetes-map-type 1"),
        (json!({"x-kubernetes-patch-strategy": "x"}), "unknown x-kubernetes-patch-strategy \"x\""),
        (
            json!({"type": "array", "items": {}, "x-kubernetes-list-type": "map"}),
            "`x-kubernetes-list-map-keys` must be specified on lists of type map",
        ),
    ] {
        let error = convert(inside(model.clone())).unwrap_err();
        assert_eq!(error.to_string(), message, "{model}");
    }
    assert!(Schema::from_openapi(&BTreeMap::new(), "Root").is_err());
}
