//! Removal of fields and items from a value (structured-merge-diff, `typed/remove.go`).

use serde_json::{Map as Object, Value};

use super::item;
use crate::path::PathElement;
use crate::schema::{List, Map, Part, Schema, TypeId};
use crate::set::Set;

/// Returns a copy of `value` without the fields and items in `items`; null if nothing remains.
pub(super) fn remove(schema: &Schema, of: TypeId, value: &Value, items: &Set) -> Value {
    match (schema.atom(of).part_for(Some(value)), value) {
        (Part::Scalar(_), value) => value.clone(),
        (Part::List(list), Value::Array(old)) if !list.atomic => {
            remove_items(schema, list, old, items)
        }
        (Part::Map(map), Value::Object(old)) if !map.atomic => {
            remove_fields(schema, map, old, items)
        }
        // A value without parts cannot lose a part; the caller decides if the whole value is
        // removed.
        _ => Value::Null,
    }
}

fn remove_items(schema: &Schema, list: &List, old: &[Value], items: &Set) -> Value {
    let mut kept = Vec::new();
    for one in old {
        let Ok(element) = item::element(schema, list, one) else {
            kept.push(one.clone());
            continue;
        };
        if items.has_member(&element) {
            continue;
        }
        kept.push(match items.inside(&element).filter(|inside| !inside.is_empty()) {
            Some(inside) => remove(schema, list.element, one, inside),
            None => one.clone(),
        });
    }
    if kept.is_empty() { Value::Null } else { Value::Array(kept) }
}

fn remove_fields(schema: &Schema, map: &Map, old: &Object<String, Value>, items: &Set) -> Value {
    let mut kept = Object::new();
    for (name, one) in old {
        let element = PathElement::field(name);
        if items.has_member(&element) {
            continue;
        }
        let kept_value = match items.inside(&element).filter(|inside| !inside.is_empty()) {
            Some(inside) => {
                map.field(name).map_or(Value::Null, |of| remove(schema, of, one, inside))
            }
            None => one.clone(),
        };
        kept.insert(name.clone(), kept_value);
    }
    if kept.is_empty() { Value::Null } else { Value::Object(kept) }
}
