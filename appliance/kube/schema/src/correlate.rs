//! Correlation of new values with old ones (apiserver `pkg/cel/common/equality.go`).
//!
//! Fields correlate by name, items of lists of type map by their keys. Other values never do.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::node::{ListType, Node};

/// Old items of a list of type map, by their keys.
pub(crate) struct OldItems<'a> {
    keys: &'a [String],
    by_key: HashMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    /// Indexes the old items; `None` if the list is not of type map or has no old value.
    pub fn of(node: &'a Node, old: Option<&'a Value>) -> Option<Self> {
        let old = old?.as_array()?;
        let keys = node.list_map_keys();
        if node.kind() != "array" || node.list_type() != Some(ListType::Map) || keys.is_empty() {
            return None;
        }
        let mut by_key = HashMap::with_capacity(old.len());
        for item in old {
            if let Some(key) = item.as_object().and_then(|item| composite_key(keys, item)) {
                by_key.entry(key).or_insert(item);
            }
        }
        Some(Self { keys, by_key })
    }

    /// Returns the old item with the same keys as `item`; `None` if there is none.
    pub fn get(&self, item: &Value) -> Option<&'a Value> {
        let key = composite_key(self.keys, item.as_object()?)?;
        self.by_key.get(&key).copied()
    }
}

/// Returns the values of all keys as a single text; `None` if a key is absent or not a scalar.
fn composite_key(keys: &[String], item: &Map<String, Value>) -> Option<String> {
    let mut composite = String::new();
    for key in keys {
        match item.get(key)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            // The JSON form distinguishes 1 from 1.0, and true from "true".
            scalar => composite.push_str(&scalar.to_string()),
        }
        composite.push('\0');
    }
    Some(composite)
}

/// Returns the old value of the field `name`; `None` also if no schema describes the field.
pub(crate) fn old_field<'a>(node: &Node, name: &str, old: Option<&'a Value>) -> Option<&'a Value> {
    node.child(name)?;
    old?.as_object()?.get(name)
}

/// Returns true if a value is unchanged. Items of lists of type map may have another order.
pub(crate) fn is_unchanged(node: &Node, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(new_items), Value::Array(old_items)) => {
            if new_items.len() != old_items.len() {
                return false;
            }
            match (OldItems::of(node, Some(old)), node.items()) {
                (Some(olds), Some(below)) => new_items
                    .iter()
                    .all(|item| olds.get(item).is_some_and(|old| is_unchanged(below, item, old))),
                _ => new_items == old_items,
            }
        }
        (Value::Object(new_map), Value::Object(old_map)) => {
            new_map.len() == old_map.len()
                && new_map.iter().all(|(name, value)| {
                    let pair = node.child(name).zip(old_map.get(name));
                    pair.is_some_and(|(below, old)| is_unchanged(below, value, old))
                })
        }
        _ => new == old,
    }
}
