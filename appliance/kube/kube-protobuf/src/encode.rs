//! Conversion of JSON to a protobuf message. Unknown fields are omitted, as Go's JSON decoder does.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use crate::budget::deeper;
use crate::catalog::{Field, Kind, Shape, Type, catalog};
use crate::moment::{self, Exact};
use crate::wire::{put_bytes, put_fixed, put_number};
use crate::{Error, forms};

/// Encodes a message of the type `of` inside `depth` outer messages.
pub(crate) fn message(of: &Type, value: &Value, depth: usize) -> Result<Vec<u8>, Error> {
    let depth = deeper(depth)?;
    let mut out = Vec::new();
    let nothing = Map::new();
    let object = match value {
        Value::Object(object) => object,
        Value::Null => &nothing,
        Value::Array(_) if of.slice => {
            if let Some(items) = of.fields.first() {
                field(items, value, depth, &mut out)?;
            }
            return Ok(out);
        }
        _ => return Err(Error::field(of.name, "it is not an object")),
    };
    for one in &of.fields {
        if one.name.is_empty() {
            field(one, value, depth, &mut out)?;
        } else if let Some(value) = object.get(one.name) {
            field(one, value, depth, &mut out)?;
        }
    }
    Ok(out)
}

fn field(field: &Field, value: &Value, depth: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    match (field.shape, value) {
        (_, Value::Null) => Ok(()),
        (Shape::One, value) => put(field, field.number, value, depth, out),
        (Shape::List, Value::Array(items)) => {
            items.iter().try_for_each(|item| put(field, field.number, item, depth, out))
        }
        (Shape::Map, Value::Object(entries)) => {
            for (key, value) in entries {
                let mut entry = Vec::new();
                put_bytes(&mut entry, 1, key.as_bytes());
                put(field, 2, value, depth, &mut entry)?;
                put_bytes(out, field.number, &entry);
            }
            Ok(())
        }
        _ => Err(Error::field(field.name, "it is not a list or a map")),
    }
}

/// Appends one value of a field, with the field number `number`.
fn put(
    field: &Field,
    number: u32,
    value: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if value.is_null() {
        // A null item or entry is the zero value, as in Go.
        match field.kind {
            Kind::Bool | Kind::Int32 | Kind::Int64 => put_number(out, number, 0),
            Kind::Double => put_fixed(out, number, 0),
            _ => put_bytes(out, number, &[]),
        }
        return Ok(());
    }
    let done = match field.kind {
        Kind::Bool => value.as_bool().map(|set| put_number(out, number, u64::from(set))),
        Kind::Int32 | Kind::Int64 => {
            integer(value).map(|value| put_number(out, number, value.cast_unsigned()))
        }
        Kind::Double => value.as_f64().map(|value| put_fixed(out, number, value.to_bits())),
        Kind::Text => value.as_str().map(|text| put_bytes(out, number, text.as_bytes())),
        Kind::Bytes => value
            .as_str()
            .and_then(|text| BASE64_STANDARD.decode(text).ok())
            .map(|bytes| put_bytes(out, number, &bytes)),
        Kind::Time | Kind::MicroTime => {
            let exact = if field.kind == Kind::Time { Exact::Second } else { Exact::Microsecond };
            let bytes = value.as_str().and_then(|text| moment::write(text, exact));
            bytes.map(|bytes| put_bytes(out, number, &bytes))
        }
        Kind::Message(place) => {
            let bytes = Some(message(catalog().message(place), value, depth)?);
            bytes.map(|bytes| put_bytes(out, number, &bytes))
        }
        kind => forms::write(kind, value, depth)?.map(|bytes| put_bytes(out, number, &bytes)),
    };
    done.ok_or_else(|| Error::field(field.name, "its value is of another type"))
}

fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        (number.abs() < 9e15).then_some(number as i64)
    })
}
