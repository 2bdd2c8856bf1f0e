//! Objects as JSON: stored bytes to served value and back, and the few fields the engine reads.

pub(crate) mod bytes;
pub(crate) mod fields;
pub(super) mod metadata;
pub mod names;
pub(crate) mod namespace;
pub(super) mod native;
pub(super) mod ownership;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::definition::ResourceDefinition;
use crate::status_error::{Reason, StatusError};

/// Largest object anybody may write, in bytes of compact JSON; also the largest request body. The
/// box's own marks have room above it: up to [`store::MAX_VALUE_BYTES`].
pub const MAX_OBJECT_BYTES: usize = 3 * 1024 * 1024;

/// Deepest nesting of a stored object. Readers of JSON, ours too, give up at 128, and a list wraps
/// its items once more.
pub const MAX_DEPTH: usize = 100;

/// Longest way to a value of an object, in bytes of the names on it. What is looked at below a name
/// is told with its path, so that a long name over many values would be written as often.
pub const MAX_PATH_BYTES: usize = 4 * 1024;

/// The form `definition` serves: the stored JSON with its revision as `metadata.resourceVersion`.
pub fn decode(
    definition: &ResourceDefinition,
    stored: &store::Stored,
) -> Result<Value, StatusError> {
    decode_written(definition, stored, stored.revision)
}

/// As [`decode`], of an object that was written at another revision than it is shown with: a
/// deletion's, whose object is the one before.
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

/// The stored form of an object as `definition` serves it: compact JSON without
/// `metadata.resourceVersion`, which is the store's. One that is going may be larger than it could
/// be made: it carries what its deletion added, and finalizers are still to be taken away.
pub fn encode(definition: &ResourceDefinition, object: &Value) -> Result<Vec<u8>, StatusError> {
    if is_deleting(object) {
        return encode_own(definition, object);
    }
    encode_within(MAX_OBJECT_BYTES, definition, object)
}

/// As [`encode`], for what the box itself writes into an object somebody else has made.
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
        .map_err(|error| StatusError::internal("cannot serialise an object", &error))?;
    if bytes.len() > limit {
        return Err(StatusError::new(
            Reason::RequestEntityTooLarge,
            format!("the object has {} bytes, the limit is {limit}", bytes.len()),
        ));
    }
    Ok(bytes)
}

/// Writes `revision` into the served object.
pub fn set_revision(object: &mut Value, revision: u64) {
    metadata_mut(object).insert("resourceVersion".to_owned(), json!(revision.to_string()));
}

/// The object's metadata, made empty when it is missing or no object.
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

/// A text in the metadata; empty when it is missing or no text.
pub fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Whether deletion has been asked for and waits for finalizers.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The finalizers that hold back deletion.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Whether finalizers hold the object: a namespace has some of its own beside those of every
/// object.
pub fn is_held(definition: &ResourceDefinition, object: &Value) -> bool {
    let own = || object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    finalizers(object).next().is_some() || (definition.is_namespace && own())
}

/// Counts the generation up by one.
pub fn bump_generation(object: &mut Value) {
    let next = object["metadata"]["generation"].as_i64().unwrap_or(0).saturating_add(1);
    metadata_mut(object).insert("generation".to_owned(), json!(next));
}

/// Whether two forms ask for different things: anything outside `metadata`, and outside `status`
/// where that has its own subresource.
pub fn intent_differs(definition: &ResourceDefinition, one: &Value, other: &Value) -> bool {
    let ignored =
        |key: &str| key == "metadata" || (key == "status" && definition.status_subresource);
    let strip = |value: &Value| -> Vec<(String, Value)> {
        let map = value.as_object().into_iter().flatten();
        map.filter(|(key, _)| !ignored(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    strip(one) != strip(other)
}

/// A time as Kubernetes writes it: RFC 3339, whole seconds, Z.
pub fn time_text(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
