//! Types whose JSON differs from their protobuf fields, because Go's types have a `MarshalJSON`.

use serde_json::{Value, json};

use crate::budget::Budget;
use crate::catalog::{Kind, Type, catalog};
use crate::wire::{Content, Reader, put_bytes, put_number};
use crate::{Error, decode, duration, encode, envelope, quantity};

const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

/// Fields 0 to 3 of a small message. Of a repeated field, the last value counts; `more` has all.
struct Parts<'a> {
    number: [u64; 4],
    bytes: [Option<&'a [u8]>; 4],
    more: Vec<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn read(bytes: &'a [u8], budget: &mut Budget) -> Result<Self, Error> {
        let mut parts = Self { number: [0; 4], bytes: [None; 4], more: Vec::new() };
        let mut reader = Reader(bytes);
        while let Some((number, content)) = reader.next()? {
            let place = number as usize;
            if place >= parts.number.len() {
                continue;
            }
            match content {
                Content::Varint(value) => parts.number[place] = value,
                Content::Bytes(bytes) => {
                    parts.bytes[place] = Some(bytes);
                    if number == 2 {
                        budget.take(1)?;
                        parts.more.push(bytes);
                    }
                }
                _ => return Err(Error::Malformed("an unexpected wire type")),
            }
        }
        Ok(parts)
    }

    fn text(&self, place: usize) -> String {
        String::from_utf8_lossy(self.bytes[place].unwrap_or_default()).into_owned()
    }
}

/// Decodes a message of the special type `kind` to JSON; `name` is the field's name for errors.
pub(crate) fn read(
    kind: Kind,
    name: &str,
    bytes: &[u8],
    depth: usize,
    budget: &mut Budget,
) -> Result<Value, Error> {
    let parts = Parts::read(bytes, budget)?;
    let mut schema = |bytes| decode::message(schema_type()?, bytes, depth, budget);
    match kind {
        Kind::Duration => Ok(json!(duration::text(parts.number[1].cast_signed()))),
        Kind::Quantity => match parts.text(1) {
            text if quantity::is_quantity(&text) => Ok(json!(text)),
            text if text.is_empty() && bytes.is_empty() => Ok(json!("0")),
            _ => Err(Error::field(name, "it is not a quantity")),
        },
        Kind::IntOrString => match parts.number[1] {
            0 => Ok(json!((parts.number[2] as u32).cast_signed())),
            1 => Ok(json!(parts.text(3))),
            _ => Err(Error::field(name, "it is not a number or a string")),
        },
        Kind::Fields | Kind::Json => budget.json(parts.bytes[1].unwrap_or_default(), depth),
        Kind::RawExtension => match parts.bytes[1].unwrap_or_default() {
            raw if envelope::is_protobuf(raw) => envelope::read(raw, ("", ""), depth, budget),
            raw => budget.json(raw, depth),
        },
        Kind::SchemaOrBool => match parts.bytes[2] {
            Some(bytes) => schema(bytes),
            None => Ok(json!(parts.number[1] != 0)),
        },
        Kind::SchemaOrArray if !parts.more.is_empty() => {
            parts.more.into_iter().map(schema).collect()
        }
        Kind::SchemaOrStrings if !parts.more.is_empty() => {
            Ok(parts.more.into_iter().map(String::from_utf8_lossy).collect())
        }
        _ => parts.bytes[1].map_or(Ok(Value::Null), schema),
    }
}

fn schema_type() -> Result<&'static Type, Error> {
    catalog().named(SCHEMA).ok_or(Error::Malformed("the type of schemas is unknown"))
}

/// Encodes a JSON value as a message of the special type `kind`; `None` if the value is invalid.
pub(crate) fn write(kind: Kind, value: &Value, depth: usize) -> Result<Option<Vec<u8>>, Error> {
    let mut out = Vec::new();
    match (kind, value) {
        (Kind::Fields | Kind::Json | Kind::RawExtension, value) => {
            put_bytes(&mut out, 1, value.to_string().as_bytes());
        }
        (Kind::Duration, Value::String(text)) => {
            let Some(span) = duration::parse(text) else { return Ok(None) };
            put_number(&mut out, 1, span.cast_unsigned());
        }
        (Kind::Quantity, Value::String(text)) if quantity::is_quantity(text) => {
            put_bytes(&mut out, 1, text.as_bytes());
        }
        (Kind::Quantity, Value::Number(number)) => {
            put_bytes(&mut out, 1, number.to_string().as_bytes());
        }
        (Kind::IntOrString, value) => return Ok(int_or_string(value, &mut out).map(|()| out)),
        (Kind::SchemaOrBool, Value::Bool(allows)) => {
            put_number(&mut out, 1, u64::from(*allows));
        }
        (Kind::SchemaOrBool, schema) => {
            put_number(&mut out, 1, 1);
            put_schema(&mut out, 2, schema, depth)?;
        }
        (Kind::SchemaOrArray | Kind::SchemaOrStrings, Value::Array(items)) => {
            for item in items {
                match item {
                    Value::String(name) => put_bytes(&mut out, 2, name.as_bytes()),
                    schema => put_schema(&mut out, 2, schema, depth)?,
                }
            }
        }
        (Kind::SchemaOrArray | Kind::SchemaOrStrings, schema) => {
            put_schema(&mut out, 1, schema, depth)?;
        }
        _ => return Ok(None),
    }
    Ok(Some(out))
}

fn int_or_string(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    if let Some(text) = value.as_str() {
        put_number(out, 1, 1);
        put_bytes(out, 3, text.as_bytes());
    } else {
        let number = i32::try_from(value.as_i64()?).ok()?;
        put_number(out, 2, i64::from(number).cast_unsigned());
    }
    Some(())
}

fn put_schema(out: &mut Vec<u8>, number: u32, value: &Value, depth: usize) -> Result<(), Error> {
    put_bytes(out, number, &encode::message(schema_type()?, value, depth)?);
    Ok(())
}
