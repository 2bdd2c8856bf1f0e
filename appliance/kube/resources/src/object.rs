//! Conversion of objects between stored JSON bytes and served values, and access to the metadata
//! fields that the engine reads.

pub(crate) mod bytes;
pub mod names;
pub(crate) mod namespace;
mod warnings;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::definition::ResourceDefinition;
use crate::status_error::{Reason, StatusError};
pub use warnings::{MAX_WARNINGS, Warnings};

/// Maximum size of an object that a client may write, in bytes of compact JSON; also the largest
/// request body. The box's own additions may exceed this limit, up to [`store::MAX_VALUE_BYTES`].
pub const MAX_OBJECT_BYTES: usize = 3 * 1024 * 1024;

/// Maximum nesting depth of a stored object: the limit of patches.
pub const MAX_DEPTH: usize = kube_patch::MAX_DEPTH;

/// Maximum length of the path to a value in an object, in bytes of its field names. The limit
/// bounds the length of messages, which repeat the path of each value.
pub const MAX_PATH_BYTES: usize = 4 * 1024;

/// Returns the served form: the stored JSON with its revision as `metadata.resourceVersion`.
pub fn decode(
    definition: &ResourceDefinition,
    stored: &store::Stored,
) -> Result<Value, StatusError> {
    decode_written(definition, stored, stored.revision)
}

/// Works as [`decode`], for the last state of a deleted object: `written` is the revision of the
/// last write; the shown revision is that of the deletion.
pub fn decode_written(
    definition: &ResourceDefinition,
    stored: &store::Stored,
    written: u64,
) -> Result<Value, StatusError> {
    let mut object: Value = serde_json::from_slice(&stored.value)
        .map_err(|error| StatusError::internal("cannot read a stored object", &error))?;
    definition.to_served(&mut object);
    if !definition.is_current(written) {
        definition.complete_stored(&mut object);
    }
    set_revision(&mut object, stored.revision);
    Ok(object)
}

/// Returns the stored form of a served object: compact JSON without `metadata.resourceVersion`. An
/// object in deletion may exceed [`MAX_OBJECT_BYTES`], because the deletion added fields and
/// clients must still be able to remove finalizers.
pub fn encode(definition: &ResourceDefinition, object: &Value) -> Result<Vec<u8>, StatusError> {
    if is_deleting(object) {
        return encode_own(definition, object);
    }
    encode_within(MAX_OBJECT_BYTES, definition, object)
}

/// Works as [`encode`] with the limit [`store::MAX_VALUE_BYTES`], for the box's own writes.
pub fn encode_own(definition: &ResourceDefinition, object: &Value) -> Result<Vec<u8>, StatusError> {
    encode_within(store::MAX_VALUE_BYTES, definition, object)
}

fn encode_within(
    limit: usize,
    definition: &ResourceDefinition,
    object: &Value,
) -> Result<Vec<u8>, StatusError> {
    if !stdx::json::is_within(object, MAX_DEPTH) {
        let why = format!("the object is nested deeper than {MAX_DEPTH} levels");
        return Err(StatusError::bad_request(why));
    }
    let mut object = object.clone();
    metadata_mut(&mut object).remove("resourceVersion");
    definition.to_stored(&mut object);
    let bytes = serde_json::to_vec(&object)
        .map_err(|error| StatusError::internal("cannot serialize an object", &error))?;
    if bytes.len() > limit {
        return Err(StatusError::new(
            Reason::RequestEntityTooLarge,
            format!("the object has {} bytes, the limit is {limit}", bytes.len()),
        ));
    }
    Ok(bytes)
}

/// Sets `metadata.resourceVersion` to `revision` in the served object.
pub fn set_revision(object: &mut Value, revision: u64) {
    metadata_mut(object).insert("resourceVersion".to_owned(), json!(revision.to_string()));
}

/// Returns the object's metadata; sets empty metadata if the field is missing or not an object.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("it was just made an object")
}

/// Returns a text field of the metadata; empty if the field is missing or not text.
pub fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Returns true if the object has a `deletionTimestamp`.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Returns the finalizers that block deletion.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Returns true if finalizers block the deletion. A namespace has its own finalizers in `spec`, in
/// addition to those in `metadata`.
pub fn is_held(definition: &ResourceDefinition, object: &Value) -> bool {
    let own = || object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    finalizers(object).next().is_some() || (definition.is_namespace && own())
}

/// Increments `metadata.generation` by one.
pub fn bump_generation(object: &mut Value) {
    let next = object["metadata"]["generation"].as_i64().unwrap_or(0).saturating_add(1);
    metadata_mut(object).insert("generation".to_owned(), json!(next));
}

/// Returns true if two states of an object differ in a field other than `metadata`, or `status` if
/// the kind has the subresource `/status`.
pub fn intent_differs(definition: &ResourceDefinition, one: &Value, other: &Value) -> bool {
    let ignored =
        |key: &str| key == "metadata" || (key == "status" && definition.status_subresource);
    let strip = |value: &Value| -> Vec<(String, Value)> {
        let map = value.as_object().into_iter().flatten();
        map.filter(|(key, _)| !ignored(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    strip(one) != strip(other)
}

/// Formats a time as Kubernetes does: RFC 3339, whole seconds, Z.
pub fn time_text(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
