//! Checks of the type and metadata of embedded resources.

use serde_json::{Map, Value};

use super::child;
use crate::field_error::FieldError;
use crate::node::Node;
use crate::text::names;

/// Maximum size of all annotations of an object, in bytes.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// Appends to `errors` the mistakes in every embedded resource below `value`.
pub(crate) fn check_below(node: &Node, value: &Value, errors: &mut Vec<FieldError>) {
    check_at(node, "", value, errors);
}

/// Appends to `errors` the mistakes in every embedded resource in the value at `path`.
pub(crate) fn check_at(node: &Node, path: &str, value: &Value, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            if node.embedded {
                check_resource(path, map, errors);
            }
            for (name, value) in map {
                if let Some(below) = node.properties.get(name) {
                    check_at(below, &child(path, name), value, errors);
                } else if let Some(below) = node.additional_node() {
                    check_at(below, &format!("{path}[{name}]"), value, errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = node.items() {
                for (index, item) in items.iter().enumerate() {
                    check_at(below, &format!("{path}[{index}]"), item, errors);
                }
            }
        }
        _ => {}
    }
}

fn check_resource(path: &str, map: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let field = child(path, name);
        match map.get(name) {
            None => errors.push(FieldError::required(field, "")),
            Some(value @ Value::String(text)) => {
                let detail = match (name, text.as_str()) {
                    (_, "") => "must not be empty".to_owned(),
                    ("apiVersion", text) if text.matches('/').count() > 1 => {
                        format!("unexpected GroupVersion string: {text}")
                    }
                    ("apiVersion", _) => continue,
                    (_, text) => match names::label_mistakes(&text.to_lowercase()) {
                        mistakes if mistakes.is_empty() => continue,
                        mistakes => format!(
                            "may have mixed case, but should otherwise match: {}",
                            mistakes.join(",")
                        ),
                    },
                };
                errors.push(FieldError::invalid(field, value, detail));
            }
            Some(value) => errors.push(FieldError::invalid(field, value, "must be a string")),
        }
    }
    if let Some(Value::Object(metadata)) = map.get("metadata") {
        check_metadata(&child(path, "metadata"), metadata, errors);
    }
}

fn check_metadata(path: &str, metadata: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let (name, prefix) = (text("name"), text("generateName"));
    let namespace = text("namespace");
    let mistakes = [
        ("generateName", prefix, names::path_segment_mistakes(prefix, false)),
        ("name", name, names::path_segment_mistakes(name, true)),
        (
            "namespace",
            namespace,
            match namespace {
                "" => Vec::new(),
                namespace => names::dns_label_mistakes(namespace),
            },
        ),
    ];
    for (field, value, mistakes) in mistakes {
        for mistake in mistakes {
            errors.push(FieldError::invalid(child(path, field), &value.into(), mistake));
        }
    }
    if let Some(generation) = metadata.get("generation").filter(|value| value.as_i64() < Some(0)) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(child(path, "generation"), generation, detail));
    }
    check_words(path, metadata, errors);
    check_owners(path, metadata, errors);
}

fn check_words(path: &str, metadata: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    let entries = |name: &str| metadata.get(name).and_then(Value::as_object).into_iter().flatten();
    let place = child(path, "labels");
    for (key, value) in entries("labels") {
        for mistake in names::qualified_mistakes(key) {
            errors.push(FieldError::invalid(&place, &key.as_str().into(), mistake));
        }
        for mistake in names::label_value_mistakes(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(&place, value, mistake));
        }
    }
    let place = child(path, "annotations");
    let mut size = 0;
    for (key, value) in entries("annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        for mistake in names::qualified_mistakes(&key.to_lowercase()) {
            errors.push(FieldError::invalid(&place, &key.as_str().into(), mistake));
        }
    }
    if size > MAX_ANNOTATIONS_BYTES {
        errors.push(FieldError::too_long(&place, MAX_ANNOTATIONS_BYTES));
    }
    let place = child(path, "finalizers");
    let finalizers = metadata.get("finalizers").and_then(Value::as_array);
    for finalizer in finalizers.into_iter().flatten() {
        for mistake in names::qualified_mistakes(finalizer.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(&place, finalizer, mistake));
        }
    }
}

fn check_owners(path: &str, metadata: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    for owner in owners.into_iter().flatten() {
        // Upstream reports no index.
        let place = child(path, "ownerReferences");
        for (name, detail) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            let value = owner.get(name).and_then(Value::as_str).unwrap_or_default();
            if value.is_empty() {
                errors.push(FieldError::invalid(child(&place, name), &value.into(), detail));
            }
        }
    }
}
