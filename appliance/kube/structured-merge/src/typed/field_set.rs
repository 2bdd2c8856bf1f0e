//! Set of all fields of a value (structured-merge-diff, `typed/tofieldset.go`).

use std::collections::BTreeMap;

use serde_json::{Map as Object, Value};

use super::item;
use crate::path::PathElement;
use crate::schema::{List, Map, Part, Schema, TypeId};
use crate::set::Set;

/// Returns the set of every leaf and list item of `value`.
pub(super) fn field_set(schema: &Schema, value: &Value) -> Set {
    let mut walk = Walk { schema, path: Vec::new(), set: Set::default() };
    walk.visit(schema.root(), value);
    walk.set
}

struct Walk<'s> {
    schema: &'s Schema,
    path: Vec<PathElement>,
    set: Set,
}

impl<'s> Walk<'s> {
    fn visit(&mut self, of: TypeId, value: &Value) {
        match self.schema.atom(of).part_for(Some(value)) {
            Part::Scalar(_) => self.set.insert(&self.path),
            Part::List(list) if list.atomic => self.set.insert(&self.path),
            Part::Map(map) if map.atomic => self.set.insert(&self.path),
            Part::List(list) => {
                if let Value::Array(items) = value {
                    self.list(list, items);
                }
            }
            Part::Map(map) => {
                if let Value::Object(fields) = value {
                    self.map(map, fields);
                }
            }
            Part::Nothing => {}
        }
    }

    /// Adds the items of a list. Duplicate items form one leaf, because a manager cannot own only
    /// one of them.
    fn list(&mut self, list: &'s List, items: &[Value]) {
        let mut by_element: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
        for one in items {
            if let Ok(element) = item::element(self.schema, list, one) {
                by_element.entry(element).or_default().push(one);
            }
        }
        for (element, same) in by_element {
            self.path.push(element);
            if let [one] = same.as_slice() {
                self.visit(list.element, one);
            }
            self.set.insert(&self.path);
            self.path.pop();
        }
    }

    fn map(&mut self, map: &'s Map, fields: &Object<String, Value>) {
        for (name, value) in fields {
            self.path.push(PathElement::field(name));
            if let Some(of) = map.field(name) {
                self.visit(of, value);
            }
            let is_empty = value.is_null() || value.as_object().is_some_and(Object::is_empty);
            if is_empty || !map.fields.contains_key(name) {
                self.set.insert(&self.path);
            }
            self.path.pop();
        }
    }
}
