//! Conversion of stored objects to served JSON text, without parsing into a tree.
//!
//! Stored objects are compact JSON written by [`crate::object::encode`]: without spaces, each key
//! once. Therefore one pass over the bytes finds the two differences of the served form: revision
//! and version.

use serde_json::Value;
use store::Stored;

use crate::definition::ResourceDefinition;
use crate::object::decode_written;
use crate::status_error::StatusError;

const METADATA: &[u8] = b"\"metadata\":{";
const API_VERSION: &[u8] = b"\"apiVersion\":\"";
const KIND: &[u8] = b"\"kind\":\"";

/// Appends the object to `out` in the form that `definition` serves. `written` is the revision of
/// the last write; for a deleted object, `stored.revision` is later.
///
/// # Errors
/// Returns an error if the stored bytes are not what `encode` wrote.
pub(crate) fn write_served(
    definition: &ResourceDefinition,
    stored: &Stored,
    written: u64,
    out: &mut Vec<u8>,
) -> Result<(), StatusError> {
    let begun = out.len();
    let same = definition.is_current(written) && definition.conversion.is_none();
    if same && splice(definition, stored, out).is_some() {
        return Ok(());
    }
    out.truncate(begun);
    write_value(&decode_written(definition, stored, written)?, out)
}

/// Appends the object as an item of a list. Items of Kubernetes' own kinds have no apiVersion and
/// kind, as in upstream's typed lists.
///
/// # Errors
/// Returns an error if the stored bytes are not what `encode` wrote.
pub fn write_item(
    definition: &ResourceDefinition,
    stored: &Stored,
    out: &mut Vec<u8>,
) -> Result<(), StatusError> {
    let begun = out.len();
    write_served(definition, stored, stored.revision, out)?;
    if definition.native {
        for key in [API_VERSION, KIND] {
            cut(out, begun, key);
        }
    }
    Ok(())
}

/// Returns the bytes of a stored object from the value of `metadata` on.
pub(crate) fn metadata(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(top_level(bytes, METADATA)? + METADATA.len() - 1..)
}

/// Removes the text field `key` from the object that starts at the offset `begun`. Does nothing if
/// `key` is the last field.
fn cut(out: &mut Vec<u8>, begun: usize, key: &[u8]) -> Option<()> {
    let object = out.get(begun..)?;
    let from = top_level(object, key)?;
    let value = from + key.len() - 1;
    let end = value + text_length(object.get(value..)?)?;
    if object.get(end) == Some(&b',') {
        out.drain(begun + from..=begun + end);
    }
    Some(())
}

/// Appends a value as compact JSON.
///
/// # Errors
/// Returns an error if a key is not text.
pub fn write_value(value: &Value, out: &mut Vec<u8>) -> Result<(), StatusError> {
    serde_json::to_writer(out, value)
        .map_err(|error| StatusError::internal("cannot serialize an object", &error))
}

/// Appends the stored text to `out` with the revision in the metadata and the served version as
/// `apiVersion`. Returns `None` if the bytes are not an object that `encode` wrote.
fn splice(definition: &ResourceDefinition, stored: &Stored, out: &mut Vec<u8>) -> Option<()> {
    let bytes = &*stored.value;
    let metadata = top_level(bytes, METADATA)? + METADATA.len();
    // After a change of the storage version, stored objects can have different versions.
    let version = top_level(bytes, API_VERSION)? + API_VERSION.len();
    let end = version + bytes.get(version..)?.iter().position(|byte| *byte == b'"')?;
    if end > metadata {
        // Keys are written in order; other bytes are not ours.
        return None;
    }
    out.extend_from_slice(bytes.get(..version)?);
    out.extend_from_slice(definition.api_version().as_bytes());
    out.extend_from_slice(bytes.get(end..metadata)?);
    out.extend_from_slice(b"\"resourceVersion\":\"");
    out.extend_from_slice(stored.revision.to_string().as_bytes());
    let rest = bytes.get(metadata..)?;
    out.extend_from_slice(if rest.first() == Some(&b'}') { b"\"" } else { b"\"," });
    out.extend_from_slice(rest);
    Some(())
}

/// Returns the offset of `key` (with its quotes, colon and the start of its value) among the keys
/// of the outermost object.
fn top_level(bytes: &[u8], key: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let before = at.checked_sub(1).and_then(|before| bytes.get(before));
                let is_key = depth == 1 && matches!(before, Some(b'{' | b','));
                if is_key && bytes.get(at..)?.starts_with(key) {
                    return Some(at);
                }
                at += text_length(bytes.get(at..)?)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the length of the JSON string at the start of `bytes`, quotes included.
fn text_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests;
