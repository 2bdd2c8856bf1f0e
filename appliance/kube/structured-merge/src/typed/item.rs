//! Path elements of list items (structured-merge-diff, `typed/helpers.go`).

use serde_json::Value;

use crate::path::PathElement;
use crate::schema::{List, Schema};
use go_text::quoted;

/// Returns the path element of an item: the values of its keys, or the scalar itself in a set.
///
/// # Errors
/// A message, for an item without a unique path element.
pub(super) fn element(schema: &Schema, list: &List, item: &Value) -> Result<PathElement, String> {
    if list.atomic {
        return Err("invalid indexing of non-associative list".to_owned());
    }
    if list.keys.is_empty() { of_set(item) } else { of_keys(schema, list, item) }
}

fn of_set(item: &Value) -> Result<PathElement, String> {
    let why = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        _ => return Ok(PathElement::Value(item.clone())),
    };
    Err(why.to_owned())
}

fn of_keys(schema: &Schema, list: &List, item: &Value) -> Result<PathElement, String> {
    let object = match item {
        Value::Object(object) => object,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut fields = Vec::with_capacity(list.keys.len());
    for key in &list.keys {
        // A missing key without default is left out; the result is a different item.
        let value = match object.get(key) {
            Some(value) => Some(value),
            None => default(schema, list, key)?,
        };
        if let Some(value) = value {
            fields.push((key.clone(), value.clone()));
        }
    }
    if fields.is_empty() {
        let keys: Vec<_> = list.keys.iter().map(|key| quoted(key)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and \
             doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    Ok(PathElement::key(fields))
}

fn default<'s>(schema: &'s Schema, list: &List, key: &str) -> Result<Option<&'s Value>, String> {
    let Some(map) = &schema.atom(list.element).map else {
        return Err(format!(
            "couldn't find default value for {key}: associative list may not have non-map types"
        ));
    };
    Ok(map.fields.get(key).and_then(|field| field.default.as_ref()))
}
