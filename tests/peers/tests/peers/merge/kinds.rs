//! A kind with every way of merging, in two versions, before and after its definition changed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Kind of the test objects.
pub const KIND: &str = "Thing";
/// API versions of the kind.
pub const VERSIONS: [&str; 2] = ["example.com/v1", "example.com/v2"];

/// The OpenAPI models. `changed` turns some leaves into containers and some containers into leaves.
pub fn models(changed: bool) -> BTreeMap<String, Value> {
    let named = [
        ("Thing1", thing("v1", changed)),
        ("Thing2", thing("v2", !changed)),
        ("Meta", meta()),
        ("Node", node()),
        ("Pair", pair()),
    ];
    named.map(|(name, model)| (name.to_owned(), model)).into()
}

fn thing(version: &str, changed: bool) -> Value {
    json!({
        "type": "object",
        "x-kubernetes-group-version-kind": [
            { "group": "example.com", "version": version, "kind": KIND },
        ],
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "metadata": { "$ref": "#/definitions/Meta" },
            "spec": spec(changed),
            "status": {
                "type": "object",
                "properties": {
                    "ready": { "type": "boolean" },
                    "conditions": list(&["type"], json!({
                        "type": { "type": "string" }, "status": { "type": "string" },
                    })),
                },
            },
        },
    })
}

fn spec(changed: bool) -> Value {
    let map_type = if changed { "granular" } else { "atomic" };
    let list_type = if changed { "atomic" } else { "set" };
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "count": { "type": "integer" },
            "flag": { "type": "boolean" },
            "size": { "x-kubernetes-int-or-string": true },
            "labels": texts(),
            "options": {
                "type": "object", "x-kubernetes-map-type": map_type,
                "additionalProperties": { "type": "string" },
            },
            "struct": {
                "type": "object",
                "properties": {
                    "a": { "type": "integer" }, "b": { "type": "integer" },
                    "inner": { "type": "object", "properties": { "c": { "type": "integer" } } },
                },
            },
            "words": {
                "type": "array", "x-kubernetes-list-type": list_type,
                "items": { "type": "string" },
            },
            "numbers": {
                "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "number" },
            },
            "row": {
                "type": "array", "items": { "type": "object", "properties": {
                    "a": { "type": "integer" },
                } },
            },
            "items": list(&["name"], json!({
                "name": { "type": "string" },
                "value": { "type": "integer" },
                "tags": {
                    "type": "array", "x-kubernetes-list-type": "set",
                    "items": { "type": "string" },
                },
                "texts": texts(),
                "nested": list(&["id"], json!({
                    "id": { "type": "integer" }, "text": { "type": "string" },
                })),
            })),
            "ports": list(&["port", "protocol"], json!({
                "port": { "type": "integer" },
                "protocol": { "type": "string", "default": "a" },
                "name": { "type": "string" },
            })),
            "tree": { "$ref": "#/definitions/Node" },
            "pair": { "$ref": "#/definitions/Pair" },
            "whole": { "$ref": "#/definitions/Pair", "x-kubernetes-map-type": "atomic" },
            "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "anything": { "x-kubernetes-preserve-unknown-fields": true },
        },
    })
}

fn meta() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "namespace": { "type": "string" },
            "uid": { "type": "string" },
            "resourceVersion": { "type": "string" },
            "generation": { "type": "integer" },
            "creationTimestamp": { "type": "string", "format": "date-time" },
            "labels": texts(),
            "annotations": texts(),
            "finalizers": {
                "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" },
            },
            "ownerReferences": list(&["uid"], json!({
                "uid": { "type": "string" }, "name": { "type": "string" },
            })),
            "managedFields": {
                "type": "array", "x-kubernetes-list-type": "atomic",
                "items": { "type": "object" },
            },
        },
    })
}

fn node() -> Value {
    json!({
        "type": "object",
        "properties": {
            "value": { "type": "integer" },
            "next": { "$ref": "#/definitions/Node" },
            "children": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["value"],
                "items": { "$ref": "#/definitions/Node" },
            },
        },
    })
}

fn pair() -> Value {
    json!({
        "type": "object",
        "properties": { "left": { "type": "string" }, "right": texts() },
    })
}

fn texts() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

fn list(keys: &[&str], properties: Value) -> Value {
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "items": { "type": "object", "properties": properties },
    })
}
