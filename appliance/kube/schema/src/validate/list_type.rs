//! Duplicates in lists of type set and map (apiextensions `schema/listtype/validation.go`).

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::fault::MAX_ERRORS;
use crate::field_error::FieldError;
use crate::node::{ListType, Node};

/// Appends errors for the duplicates of `new`, unless `old` had duplicates already.
pub(crate) fn check_changed(
    root: &Node,
    new: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    let mut found = Vec::new();
    check(root, "", new, &mut found);
    if found.is_empty() {
        return;
    }
    let mut before = Vec::new();
    if let Some(old) = old {
        check(root, "", old, &mut before);
    }
    if before.is_empty() {
        errors.append(&mut found);
    }
}

fn check(node: &Node, path: &str, value: &Value, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_ERRORS {
        return;
    }
    match value {
        Value::Array(items) => {
            match node.list_type() {
                Some(ListType::Set) => check_set(path, items, items, errors),
                Some(ListType::Map) => check_map(node, path, items, errors),
                _ => {}
            }
            if let Some(below) = node.items() {
                for (index, item) in items.iter().enumerate() {
                    check(below, &format!("{path}[{index}]"), item, errors);
                }
            }
        }
        Value::Object(map) => {
            // Upstream checks a named property with both schemas.
            for (name, value) in map {
                if let Some(below) = node.additional_node() {
                    check(below, &format!("{path}[{name}]"), value, errors);
                }
                if let Some(below) = node.properties.get(name) {
                    let place = match path.is_empty() {
                        true => name.clone(),
                        false => format!("{path}.{name}"),
                    };
                    check(below, &place, value, errors);
                }
            }
        }
        _ => {}
    }
}

/// Adds an error with `shown[i]` for the second occurrence of `keys[i]`, not for further ones.
fn check_set(path: &str, keys: &[Value], shown: &[Value], errors: &mut Vec<FieldError>) {
    let mut seen: HashMap<&Value, usize> = HashMap::with_capacity(keys.len());
    for (index, (key, shown)) in keys.iter().zip(shown).enumerate() {
        let times = seen.entry(key).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), shown));
        }
    }
}

fn check_map(node: &Node, path: &str, items: &[Value], errors: &mut Vec<FieldError>) {
    let is_wrong = |item: &Value| !item.is_object() && !item.is_null();
    if let Some(index) = items.iter().position(is_wrong) {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(format!("{path}[{index}]"), &items[index], detail));
        return;
    }
    let keys: Vec<Value> = items.iter().map(|item| keys_of(node, item)).collect();
    check_set(path, &keys, &keys, errors);
}

fn keys_of(node: &Node, item: &Value) -> Value {
    let mut keys = Map::new();
    for name in node.list_map_keys() {
        if let Some(value) = item.get(name) {
            keys.insert(name.clone(), value.clone());
        }
    }
    Value::Object(keys)
}
