//! What every body is wrapped in: four bytes, then `runtime.Unknown` with the kind and the bytes
//! of the object (apimachinery, `pkg/runtime/serializer/protobuf/doc.go`).

use serde_json::{Value, json};

use crate::Error;
use crate::budget::Budget;
use crate::catalogue::{Type, catalogue};
use crate::decode::message as read_message;
use crate::encode::message as write_message;
use crate::wire::{Content, Reader, put_bytes};

/// How headers name bodies of this form.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

const PREFIX: &[u8; 4] = b"k8s\0";

/// Reads a body. `expected` are the version and kind of what says neither.
///
/// # Errors
/// When the bytes are none, are too much, or are of a kind there is no table for.
pub fn decode(body: &[u8], expected: (&str, &str)) -> Result<Value, Error> {
    read(body, expected, 0, &mut Budget::new())
}

/// Writes an object, or a list of objects, of a kind there is a table for.
///
/// # Errors
/// When there is no table, or the object is not of its type.
pub fn encode(object: &Value) -> Result<Vec<u8>, Error> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let raw = match (catalogue().kind(api_version, kind), kind.strip_suffix("List")) {
        (Some(of), _) => write_message(of, object, 0)?,
        (None, Some(item)) => list(known(api_version, item)?, object)?,
        (None, None) => return Err(unknown(api_version, kind)),
    };
    let mut meta = Vec::new();
    put_bytes(&mut meta, 1, api_version.as_bytes());
    put_bytes(&mut meta, 2, kind.as_bytes());
    let mut out = PREFIX.to_vec();
    put_bytes(&mut out, 1, &meta);
    put_bytes(&mut out, 2, &raw);
    Ok(out)
}

/// Every list is its metadata and its items.
fn list(of: &Type, object: &Value) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let meta = catalogue().named("meta.v1.ListMeta");
    let meta = meta.ok_or(Error::Malformed("the type of lists is not known"))?;
    put_bytes(&mut out, 1, &write_message(meta, &object["metadata"], 0)?);
    for item in object["items"].as_array().into_iter().flatten() {
        put_bytes(&mut out, 2, &write_message(of, item, 1)?);
    }
    Ok(out)
}

pub(crate) fn is_protobuf(bytes: &[u8]) -> bool {
    bytes.starts_with(PREFIX)
}

/// A wrapped object that lies `depth` messages deep.
pub(crate) fn read(
    body: &[u8],
    expected: (&str, &str),
    depth: usize,
    budget: &mut Budget,
) -> Result<Value, Error> {
    let mut reader = Reader(body.strip_prefix(PREFIX).ok_or(Error::NoPrefix)?);
    let (mut meta, mut raw): (&[u8], &[u8]) = (&[], &[]);
    while let Some((number, content)) = reader.next()? {
        match (number, content) {
            (1, Content::Bytes(bytes)) => meta = bytes,
            (2, Content::Bytes(bytes)) => raw = bytes,
            (3, Content::Bytes(bytes)) if !bytes.is_empty() => {
                return Err(Error::Malformed("its content is encoded once more"));
            }
            (1 | 2, _) => return Err(Error::Malformed("an envelope of another form")),
            _ => {}
        }
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    let mut reader = Reader(meta);
    while let Some((number, content)) = reader.next()? {
        match (number, content) {
            (1, Content::Bytes(bytes)) => api_version = String::from_utf8_lossy(bytes).into_owned(),
            (2, Content::Bytes(bytes)) => kind = String::from_utf8_lossy(bytes).into_owned(),
            _ => {}
        }
    }
    if api_version.is_empty() {
        api_version = expected.0.to_owned();
    }
    if kind.is_empty() {
        kind = expected.1.to_owned();
    }
    let mut object = read_message(known(&api_version, &kind)?, raw, depth, budget)?;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    Ok(object)
}

fn known(api_version: &str, kind: &str) -> Result<&'static Type, Error> {
    catalogue().kind(api_version, kind).ok_or_else(|| unknown(api_version, kind))
}

/// Kinds are the client's words, so they are cut to what a kind can be.
fn unknown(api_version: &str, kind: &str) -> Error {
    let short = |text: &str| text.chars().take(253).collect();
    Error::UnknownKind { api_version: short(api_version), kind: short(kind) }
}

#[cfg(test)]
mod tests;
