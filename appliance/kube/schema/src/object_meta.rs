//! Embedded resources: values that are whole Kubernetes objects with type and metadata
//! (apiextensions `schema/objectmeta`, apimachinery `pkg/api/validation/objectmeta.go`).

mod check;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::field_error::FieldError;
use crate::node::Node;
use crate::parse;
use crate::prune;
use crate::schema::Schema;

pub(crate) use check::{check_at, check_below};

/// Schema of metadata (`metav1.ObjectMeta`).
static SHAPE: LazyLock<Option<Node>> = LazyLock::new(|| parse::root(&shape()).ok());

fn shape() -> Value {
    let text = json!({"type": "string"});
    let flag = json!({"type": "boolean"});
    let texts = json!({"type": "object", "additionalProperties": text});
    json!({"type": "object", "properties": {
        "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text,
        "resourceVersion": text, "generation": {"type": "integer"},
        "creationTimestamp": text, "deletionTimestamp": text,
        "deletionGracePeriodSeconds": {"type": "integer"},
        "labels": texts, "annotations": texts,
        "finalizers": {"type": "array", "items": text},
        "ownerReferences": {"type": "array", "items": {"type": "object", "properties": {
            "apiVersion": text, "kind": text, "name": text, "uid": text,
            "controller": flag, "blockOwnerDeletion": flag}}},
        "managedFields": {"type": "array", "items": {"type": "object", "properties": {
            "manager": text, "operation": text, "apiVersion": text, "time": text,
            "fieldsType": text, "subresource": text,
            "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
    }})
}

impl Schema {
    /// Returns the error of the first embedded resource whose type or metadata cannot be decoded.
    /// Upstream rejects such an object while decoding it, with HTTP status 400.
    pub fn malformed(&self, object: &Value) -> Option<FieldError> {
        malformed_below(&self.root, "", object)
    }
}

/// Removes unknown fields of metadata at `path`, and returns messages such as `unknown field
/// "metadata.x"`. Also removes empty fields, without a message, as in Go's encoding.
pub fn prune_metadata(metadata: &mut Value, path: &str) -> Vec<String> {
    prune::words(clean(metadata, path))
}

/// Removes fields as [`prune_metadata`], but returns only their paths.
pub(crate) fn clean(metadata: &mut Value, path: &str) -> Vec<String> {
    let Some(shape) = SHAPE.as_ref() else { return Vec::new() };
    let dropped = prune::dropped(metadata, shape, path);
    if let Value::Object(map) = metadata {
        map.retain(|_, value| !is_empty(value));
        if let Some(Value::Array(owners)) = map.get_mut("ownerReferences") {
            for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
                owner.retain(|_, value| !value.is_null());
            }
        }
    }
    dropped
}

/// Returns the message of Go's decoder for a field of the wrong type in metadata, if any.
pub fn metadata_misfit(metadata: &Value) -> Option<String> {
    misfit(SHAPE.as_ref()?, "ObjectMeta", metadata).map(|misfit| misfit.words())
}

/// Value whose type differs from its field's type.
struct TypeMismatch {
    /// Go's name of the field.
    field: String,
    /// Type of the value.
    found: &'static str,
    /// Type of the field in Go.
    wanted: &'static str,
}

impl TypeMismatch {
    /// Returns the message of Go's decoder.
    fn words(&self) -> String {
        let Self { field, found, wanted } = self;
        format!("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn malformed_below(node: &Node, path: &str, value: &Value) -> Option<FieldError> {
    match value {
        Value::Object(map) => map.iter().find_map(|(name, value)| {
            let own = if node.embedded { malformed_field(map, path, name) } else { None };
            own.or_else(|| match node.properties.get(name) {
                Some(below) => malformed_below(below, &child(path, name), value),
                None => {
                    let below = node.additional_node()?;
                    malformed_below(below, &format!("{path}[{name}]"), value)
                }
            })
        }),
        Value::Array(items) => {
            let below = node.items()?;
            let mut each = items.iter().enumerate();
            each.find_map(|(index, item)| malformed_below(below, &format!("{path}[{index}]"), item))
        }
        _ => None,
    }
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn malformed_field(map: &Map<String, Value>, path: &str, name: &str) -> Option<FieldError> {
    let value = map.get(name)?;
    match name {
        "apiVersion" | "kind" if !value.is_string() => {
            Some(FieldError::invalid(child(path, name), value, "must be a string"))
        }
        "metadata" if !value.is_object() && !value.is_null() => {
            let found = go_text::json_kind(value);
            let words = format!("cannot unmarshal {found} into Go value of type v1.ObjectMeta");
            Some(FieldError::invalid(child(path, name), value, format!("json: {words}")))
        }
        "metadata" => {
            let words = misfit(SHAPE.as_ref()?, "ObjectMeta", value)?.words();
            Some(FieldError::invalid(child(path, name), value, words))
        }
        _ => None,
    }
}

/// Returns the first value whose type differs from its field's type.
fn misfit(node: &Node, field: &str, value: &Value) -> Option<TypeMismatch> {
    let fits = match (node.kind(), value) {
        (_, Value::Null) => return None,
        ("object", Value::Object(map)) => {
            return map.iter().find_map(|(name, value)| match node.properties.get(name) {
                Some(below) => misfit(below, &format!("{field}.{name}"), value),
                None => misfit(node.additional_node()?, field, value),
            });
        }
        ("array", Value::Array(items)) => {
            return items.iter().find_map(|item| misfit(node.items()?, field, item));
        }
        ("string", Value::String(_)) | ("boolean", Value::Bool(_)) => true,
        ("integer", value) => value.is_i64(),
        _ => false,
    };
    let wanted = match node.kind() {
        "integer" => "int64",
        "boolean" => "bool",
        "array" if node.items().is_some_and(|items| items.kind() == "string") => "[]string",
        "array" => "[]v1.OwnerReference",
        "object" => "map[string]string",
        _ => "string",
    };
    let found = go_text::json_kind(value);
    (!fits).then(|| TypeMismatch { field: field.to_owned(), found, wanted })
}
