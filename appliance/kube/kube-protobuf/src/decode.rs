//! Conversion of a protobuf message to the JSON that Go's encoder creates for the same object.
//!
//! A field that is not in the message becomes, by the type's table, no JSON field, null, or the
//! zero value of its type.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Number, Value, json};

use crate::budget::{Budget, deeper};
use crate::catalog::{Field, Kind, Shape, Type, catalog};
use crate::moment::{self, Exact};
use crate::wire::{Content, Reader};
use crate::{Error, forms};

/// Decodes a message of the type `of` inside `depth` outer messages.
pub(crate) fn message(
    of: &Type,
    bytes: &[u8],
    depth: usize,
    budget: &mut Budget,
) -> Result<Value, Error> {
    let depth = deeper(depth)?;
    let mut found: Vec<Option<Value>> = vec![None; of.fields.len()];
    let mut reader = Reader(bytes);
    while let Some((number, content)) = reader.next()? {
        let Some(index) = of.index(number) else { continue };
        let (field, slot) = (&of.fields[index], &mut found[index]);
        match field.shape {
            Shape::One => one(field, content, slot, depth, budget)?,
            Shape::List => append(field, content, slot, depth, budget)?,
            Shape::Map => entry(field, content, slot, depth, budget)?,
        }
    }
    if of.slice {
        return Ok(found.pop().flatten().unwrap_or_else(|| json!([])));
    }
    let mut object = Map::new();
    for (field, value) in of.fields.iter().zip(found) {
        let Some(value) = shown(field, value, depth, budget)? else { continue };
        match value {
            Value::Object(inner) if field.name.is_empty() => object.extend(inner),
            value => drop(object.insert(field.name.to_owned(), value)),
        }
    }
    budget.take(object.len())?;
    Ok(Value::Object(object))
}

fn one(
    field: &Field,
    content: Content<'_>,
    slot: &mut Option<Value>,
    depth: usize,
    budget: &mut Budget,
) -> Result<(), Error> {
    let whole = matches!(field.kind, Kind::Message(_)) && slot.is_some();
    if whole {
        // Other decoders merge duplicate fields; no encoder writes them.
        return Err(Error::field(field.name, "it is set twice"));
    }
    *slot = Some(value(field, content, depth, budget)?);
    Ok(())
}

fn append(
    field: &Field,
    content: Content<'_>,
    slot: &mut Option<Value>,
    depth: usize,
    budget: &mut Budget,
) -> Result<(), Error> {
    let Value::Array(items) = slot.get_or_insert_with(|| json!([])) else { return Ok(()) };
    let packed = matches!(field.kind, Kind::Int32 | Kind::Int64 | Kind::Bool);
    if let (true, Content::Bytes(bytes)) = (packed, content) {
        let mut reader = Reader(bytes);
        while !reader.0.is_empty() {
            budget.take(1)?;
            let content = Content::Varint(reader.varint()?);
            items.push(value(field, content, depth, budget)?);
        }
        return Ok(());
    }
    budget.take(1)?;
    items.push(value(field, content, depth, budget)?);
    Ok(())
}

fn entry(
    field: &Field,
    content: Content<'_>,
    slot: &mut Option<Value>,
    depth: usize,
    budget: &mut Budget,
) -> Result<(), Error> {
    let Value::Object(entries) = slot.get_or_insert_with(|| json!({})) else { return Ok(()) };
    let Content::Bytes(bytes) = content else { return Err(form(field)) };
    let (mut key, mut found) = (String::new(), None);
    let mut reader = Reader(bytes);
    while let Some((number, content)) = reader.next()? {
        match (number, content) {
            (1, Content::Bytes(bytes)) => key = String::from_utf8_lossy(bytes).into_owned(),
            (1, _) => return Err(form(field)),
            (2, content) => found = Some(value(field, content, depth, budget)?),
            _ => {}
        }
    }
    let value = match found {
        Some(value) => value,
        None if field.kind == Kind::Bytes => json!(""),
        None => zero(field.kind, depth, budget)?,
    };
    budget.take(1)?;
    entries.insert(key, value);
    Ok(())
}

fn form(field: &Field) -> Error {
    Error::field(field.name, "wrong wire type for this field")
}

/// Decodes one value of a field; a list or map has several.
fn value(
    field: &Field,
    content: Content<'_>,
    depth: usize,
    budget: &mut Budget,
) -> Result<Value, Error> {
    match (field.kind, content) {
        (Kind::Bool, Content::Varint(bits)) => Ok(json!(bits != 0)),
        // The upper 32 bits are dropped, as in Go's decoder.
        (Kind::Int32, Content::Varint(bits)) => Ok(json!((bits as u32).cast_signed())),
        (Kind::Int64, Content::Varint(bits)) => Ok(json!(bits.cast_signed())),
        (Kind::Double, Content::Fixed64(bits)) => double(f64::from_bits(bits))
            .ok_or_else(|| Error::field(field.name, "it is not a number")),
        (Kind::Text, Content::Bytes(bytes)) => Ok(json!(String::from_utf8_lossy(bytes))),
        (Kind::Bytes, Content::Bytes(bytes)) => Ok(json!(BASE64_STANDARD.encode(bytes))),
        (Kind::Time, Content::Bytes(bytes)) => moment::read(bytes, Exact::Second),
        (Kind::MicroTime, Content::Bytes(bytes)) => moment::read(bytes, Exact::Microsecond),
        (Kind::Message(place), Content::Bytes(bytes)) => {
            message(catalog().message(place), bytes, depth, budget)
        }
        (Kind::Bool | Kind::Int32 | Kind::Int64 | Kind::Double, _) => Err(form(field)),
        (kind, Content::Bytes(bytes)) => forms::read(kind, field.name, bytes, depth, budget),
        _ => Err(form(field)),
    }
}

/// Returns a number as Go's encoder writes it: a whole number has no decimal point.
fn double(number: f64) -> Option<Value> {
    let whole = number as i64;
    if whole as f64 == number && number.abs() < 1e15 {
        return Some(json!(whole));
    }
    Number::from_f64(number).map(Value::Number)
}

/// Returns the JSON value of a field; `None` if JSON omits the field.
fn shown(
    field: &Field,
    value: Option<Value>,
    depth: usize,
    budget: &mut Budget,
) -> Result<Option<Value>, Error> {
    let value = match (value, field.shape) {
        (Some(value), _) if field.pointer => return Ok(Some(value)),
        (Some(value), _) => value,
        (None, Shape::One) if !field.pointer => zero(field.kind, depth, budget)?,
        (None, _) => return Ok((!field.omit_empty).then_some(Value::Null)),
    };
    let empty = field.omit_empty && is_empty(field, &value);
    let never = field.omit_zero && value.is_null();
    Ok((!empty && !never).then_some(value))
}

/// Returns true if Go's encoder treats the value as empty (`omitempty`); a struct is never empty.
fn is_empty(field: &Field, value: &Value) -> bool {
    let scalar = matches!(
        field.kind,
        Kind::Bool | Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Text | Kind::Bytes
    );
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => field.shape == Shape::Map && entries.is_empty(),
        Value::Null => scalar,
        Value::Bool(set) => scalar && !set,
        Value::Number(number) => scalar && number.as_f64() == Some(0.0),
        Value::String(text) => scalar && text.is_empty(),
    }
}

/// Returns the JSON of an absent field: the zero value of its type.
fn zero(kind: Kind, depth: usize, budget: &mut Budget) -> Result<Value, Error> {
    Ok(match kind {
        Kind::Bool | Kind::SchemaOrBool => json!(false),
        Kind::Int32 | Kind::Int64 | Kind::Double | Kind::IntOrString => json!(0),
        Kind::Text => json!(""),
        Kind::Duration => json!("0s"),
        Kind::Quantity => json!("0"),
        Kind::Bytes
        | Kind::Time
        | Kind::MicroTime
        | Kind::RawExtension
        | Kind::Fields
        | Kind::Json
        | Kind::SchemaOrArray
        | Kind::SchemaOrStrings => Value::Null,
        Kind::Message(place) => message(catalog().message(place), &[], depth, budget)?,
    })
}
