//! Envelope of every body: four bytes, then `runtime.Unknown` with the kind and the bytes of the
//! object (apimachinery, `pkg/runtime/serializer/protobuf/doc.go`).

use serde_json::{Value, json};

use crate::Error;
use crate::budget::Budget;
use crate::catalog::{Type, catalog};
use crate::decode::message as read_message;
use crate::encode::message as write_message;
use crate::wire::{Content, Reader, put_bytes};

/// Media type of protobuf bodies in HTTP headers.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

const PREFIX: &[u8; 4] = b"k8s\0";

/// Decodes a body. `expected` is the API version and kind of a body that contains neither.
///
/// # Errors
/// Returns an error if the body is not valid protobuf, exceeds a limit, or has an unknown kind.
pub fn decode(body: &[u8], expected: (&str, &str)) -> Result<Value, Error> {
    read(body, expected, 0, &mut Budget::new())
}

/// Encodes an object, or a list of objects, of a kind in the catalog.
///
/// # Errors
/// Returns an error if the kind is unknown, or if a field does not have its type.
pub fn encode(object: &Value) -> Result<Vec<u8>, Error> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let raw = match (catalog().kind(api_version, kind), kind.strip_suffix("List")) {
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

/// Encodes a list: its metadata, and its items of the type `of`.
fn list(of: &Type, object: &Value) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let meta = catalog().named("meta.v1.ListMeta");
    let meta = meta.ok_or(Error::Malformed("the type of lists is unknown"))?;
    put_bytes(&mut out, 1, &write_message(meta, &object["metadata"], 0)?);
    for item in object["items"].as_array().into_iter().flatten() {
        put_bytes(&mut out, 2, &write_message(of, item, 1)?);
    }
    Ok(out)
}

pub(crate) fn is_protobuf(bytes: &[u8]) -> bool {
    bytes.starts_with(PREFIX)
}

/// Decodes an enveloped object inside `depth` outer messages.
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
                return Err(Error::Malformed("its content has a second encoding"));
            }
            (1 | 2, _) => return Err(Error::Malformed("the envelope has another form")),
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
    catalog().kind(api_version, kind).ok_or_else(|| unknown(api_version, kind))
}

/// Makes the error for an unknown kind. Version and kind come from the client, and are cut to 253
/// characters.
fn unknown(api_version: &str, kind: &str) -> Error {
    let short = |text: &str| text.chars().take(253).collect();
    Error::UnknownKind { api_version: short(api_version), kind: short(kind) }
}

#[cfg(test)]
mod tests;
