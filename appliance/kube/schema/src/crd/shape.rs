//! Fields of a CustomResourceDefinition (apiextensions `pkg/apis/apiextensions/v1/types.go`,
//! `types_jsonschema.go`). Pruning drops other fields, as Go's decoder does.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::node::Node;
use crate::parse::{self, MAX_SCHEMA_DEPTH};
use crate::prune;

/// Schema of a definition. Leaves out the `openAPIV3Schema`s, because they are recursive.
static SHAPE: LazyLock<Option<Node>> = LazyLock::new(|| parse::root(&shape()).ok());

fn shape() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let flag = json!({"type": "boolean"});
    let names = json!({"type": "object", "properties": {
        "plural": text, "singular": text, "kind": text, "listKind": text,
        "shortNames": texts, "categories": texts}});
    let service = json!({"type": "object", "properties": {
        "namespace": text, "name": text, "path": text, "port": {"type": "integer"}}});
    let column = json!({"type": "object", "properties": {
        "name": text, "type": text, "format": text, "description": text, "jsonPath": text,
        "priority": {"type": "integer"}}});
    let scale = json!({"type": "object", "properties": {
        "specReplicasPath": text, "statusReplicasPath": text, "labelSelectorPath": text}});
    let version = json!({"type": "object", "properties": {
        "name": text, "served": flag, "storage": flag, "deprecated": flag,
        "deprecationWarning": text,
        "schema": {"type": "object", "properties": {
            "openAPIV3Schema": {"x-kubernetes-preserve-unknown-fields": true}}},
        "subresources": {"type": "object", "properties": {
            "status": {"type": "object"}, "scale": scale}},
        "additionalPrinterColumns": {"type": "array", "items": column},
        "selectableFields": {"type": "array", "items": {"type": "object", "properties": {
            "jsonPath": text}}}}});
    let webhook = json!({"type": "object", "properties": {
        "conversionReviewVersions": texts,
        "clientConfig": {"type": "object", "properties": {
            "url": text, "caBundle": text, "service": service}}}});
    let condition = json!({"type": "object", "properties": {
        "type": text, "status": text, "reason": text, "message": text,
        "lastTransitionTime": text, "observedGeneration": {"type": "integer"}}});
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "group": text, "scope": text, "names": names, "preserveUnknownFields": flag,
            "conversion": {"type": "object", "properties": {
                "strategy": text, "webhook": webhook}},
            "versions": {"type": "array", "items": version}}},
        "status": {"type": "object", "properties": {
            "conditions": {"type": "array", "items": condition}, "acceptedNames": names,
            "storedVersions": texts, "observedGeneration": {"type": "integer"}}},
    }})
}

/// Keywords whose value is one schema.
const ONE: [&str; 4] = ["items", "additionalProperties", "additionalItems", "not"];
/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "items"];
/// Keywords whose value is a map of schemas by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "definitions", "dependencies"];

/// Keywords whose value contains no schema.
const PLAIN: [&str; 36] = [
    "id",
    "$schema",
    "$ref",
    "description",
    "type",
    "format",
    "title",
    "default",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "enum",
    "maxProperties",
    "minProperties",
    "required",
    "externalDocs",
    "example",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
    "allOf",
    "anyOf",
    "oneOf",
];

const RULE: [&str; 6] =
    ["rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"];

/// Removes every unknown field of a definition. Returns messages such as `unknown field "spec.x"`.
pub fn prune(object: &mut Value) -> Vec<String> {
    let Some(shape) = SHAPE.as_ref() else { return Vec::new() };
    let mut dropped = prune::dropped_of_object(object, shape);
    let versions = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for (index, version) in versions.into_iter().flatten().enumerate() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            prune_schema(schema, &path, MAX_SCHEMA_DEPTH, &mut dropped);
        }
    }
    prune::words(dropped)
}

/// Prunes a schema. Levels below the maximum depth stay: the definition is rejected later.
fn prune_schema(schema: &mut Value, path: &str, left: usize, dropped: &mut Vec<String>) {
    let (Value::Object(map), Some(left)) = (schema, left.checked_sub(1)) else { return };
    map.retain(|keyword, value| {
        let place = format!("{path}.{keyword}");
        let keyword = keyword.as_str();
        let mut known = PLAIN.contains(&keyword);
        // Go has a special decoder for these keywords, which drops fields without a report.
        let mut unreported = Vec::new();
        let reports =
            if keyword == "not" || LISTS[..3].contains(&keyword) || NAMED.contains(&keyword) {
                &mut *dropped
            } else {
                &mut unreported
            };
        if ONE.contains(&keyword) && value.is_object() {
            known = true;
            prune_schema(value, &place, left, reports);
        }
        if LISTS.contains(&keyword)
            && let Value::Array(items) = value
        {
            known = true;
            for (index, item) in items.iter_mut().enumerate() {
                prune_schema(item, &format!("{place}[{index}]"), left, reports);
            }
        }
        if NAMED.contains(&keyword)
            && let Value::Object(named) = value
        {
            known = true;
            for (name, below) in named.iter_mut() {
                prune_schema(below, &format!("{place}.{name}"), left, reports);
            }
        }
        if keyword == "x-kubernetes-validations" {
            prune_rules(value, &place, dropped);
        }
        // The parser of the schema reports a keyword with a value of a wrong type.
        known |= ONE.contains(&keyword) || LISTS.contains(&keyword) || NAMED.contains(&keyword);
        if !known {
            dropped.push(place);
        }
        known
    });
}

fn prune_rules(rules: &mut Value, path: &str, dropped: &mut Vec<String>) {
    for (index, rule) in rules.as_array_mut().into_iter().flatten().enumerate() {
        if let Value::Object(rule) = rule {
            rule.retain(|field, _| {
                let known = RULE.contains(&field.as_str());
                if !known {
                    dropped.push(format!("{path}[{index}].{field}"));
                }
                known
            });
        }
    }
}
