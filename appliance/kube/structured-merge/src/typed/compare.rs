//! Differences between two values (structured-merge-diff, `typed/compare.go`).

use std::collections::BTreeMap;

use serde_json::{Map as Object, Value};

use super::validate::{no_part, scalar};
use super::{Mismatches, item};
use crate::path::PathElement;
use crate::schema::{Choice, List, Map, Part, Schema, TypeId};
use crate::set::Set;
use crate::value::equal;

/// Differences between a first and a second value. A field is in one set at most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the first value has.
    pub removed: Set,
    /// Fields that both values have, with different contents.
    pub modified: Set,
    /// Fields that only the second value has.
    pub added: Set,
}

impl Comparison {
    /// Removes the fields in `excluded` and all fields below them.
    #[must_use]
    pub(crate) fn without(self, excluded: &Set) -> Self {
        if excluded.is_empty() {
            return self;
        }
        Self {
            removed: self.removed.recursive_difference(excluded),
            modified: self.modified.recursive_difference(excluded),
            added: self.added.recursive_difference(excluded),
        }
    }
}

/// Returns the fields that `new` removes from, changes in and adds to `old`.
pub(super) fn compare(schema: &Schema, old: &Value, new: &Value) -> Result<Comparison, Mismatches> {
    let mut walk = Walk { schema, path: Vec::new(), found: Comparison::default() };
    let mismatches = walk.visit(schema.root(), Some(old), Some(new));
    mismatches.or_else_ok(walk.found)
}

type Side<'v> = Option<&'v Value>;

struct Walk<'s> {
    schema: &'s Schema,
    path: Vec<PathElement>,
    found: Comparison,
}

impl<'s> Walk<'s> {
    /// Compares two values; at least one of them must exist.
    fn visit(&mut self, of: TypeId, old: Side<'_>, new: Side<'_>) -> Mismatches {
        let atom = self.schema.atom(of);
        let (one, other) = (atom.choose(old), atom.choose(new));
        let mut mismatches = Mismatches::none();
        let choice = match (old, new) {
            (_, None) => one,
            (None, _) => other,
            _ => {
                if one != other {
                    // The kind of the value changed: the value is compared once as each kind.
                    let (seen, _) = self.part(of, one, old, new);
                    mismatches.append(seen);
                }
                other
            }
        };
        let (seen, was_leaf) = self.part(of, choice, old, new);
        mismatches.append(seen);
        if !was_leaf {
            match (old, new) {
                (None, _) => self.found.added.insert(&self.path),
                (_, None) => self.found.removed.insert(&self.path),
                _ => {}
            }
        }
        mismatches
    }

    /// Compares one part of an atom. Returns the mismatches, and true if the field is a leaf.
    fn part(
        &mut self,
        of: TypeId,
        choice: Choice,
        old: Side<'_>,
        new: Side<'_>,
    ) -> (Mismatches, bool) {
        match self.schema.atom(of).part(choice) {
            Part::Scalar(kind) => {
                let (mut left, right) = (scalar(kind, old, "lhs: "), scalar(kind, new, "rhs: "));
                if !left.is_empty() && !right.is_empty() {
                    left.append(right);
                    return (left, false);
                }
                self.leaf(old, new);
                (Mismatches::none(), true)
            }
            Part::List(list) => {
                let (left, right) = (items(old), items(new));
                // Two empty lists are a leaf, so that empty and null are different.
                if list.atomic || (left.is_empty() && right.is_empty()) {
                    self.leaf(old, new);
                    return (Mismatches::none(), true);
                }
                (self.list(list, left, right), false)
            }
            Part::Map(map) => {
                let (left, right) = (fields(old), fields(new));
                let is_empty =
                    |side: Option<&Object<String, Value>>| side.is_none_or(Object::is_empty);
                if map.atomic || (is_empty(left) && is_empty(right)) {
                    self.leaf(old, new);
                    return (Mismatches::none(), true);
                }
                (self.map(map, left, right), false)
            }
            Part::Nothing => (no_part(), false),
        }
    }

    fn leaf(&mut self, old: Side<'_>, new: Side<'_>) {
        match (old, new) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(old), Some(new)) if !equal(old, new) => self.found.modified.insert(&self.path),
            _ => {}
        }
    }

    fn map(
        &mut self,
        map: &'s Map,
        old: Option<&Object<String, Value>>,
        new: Option<&Object<String, Value>>,
    ) -> Mismatches {
        let mut mismatches = Mismatches::none();
        for (name, was) in old.into_iter().flatten() {
            let is = new.and_then(|new| new.get(name));
            mismatches.append(self.field(map, name, Some(was), is));
        }
        for (name, is) in new.into_iter().flatten() {
            if old.is_none_or(|old| !old.contains_key(name)) {
                mismatches.append(self.field(map, name, None, Some(is)));
            }
        }
        mismatches
    }

    fn field(&mut self, map: &Map, name: &str, old: Side<'_>, new: Side<'_>) -> Mismatches {
        let element = PathElement::field(name);
        match map.field(name) {
            Some(of) => self.below(element, of, old, new),
            None => no_part().below(|| element.to_string()),
        }
    }

    fn below(
        &mut self,
        element: PathElement,
        of: TypeId,
        old: Side<'_>,
        new: Side<'_>,
    ) -> Mismatches {
        self.path.push(element.clone());
        let mismatches = self.visit(of, old, new);
        self.path.pop();
        mismatches.below(|| element.to_string())
    }

    fn list(&mut self, list: &'s List, old: &[Value], new: &[Value]) -> Mismatches {
        let mut mismatches = Mismatches::none();
        let mut sides: BTreeMap<PathElement, [Vec<&Value>; 2]> = BTreeMap::new();
        for (side, items) in [old, new].into_iter().enumerate() {
            for (at, one) in items.iter().enumerate() {
                match item::element(self.schema, list, one) {
                    Ok(element) => sides.entry(element).or_default()[side].push(one),
                    Err(why) => {
                        mismatches.append(Mismatches::one(format!("element {at}: {why}")));
                    }
                }
            }
        }
        for (element, [old, new]) in sides {
            mismatches.append(self.items(list, element, &old, &new));
        }
        mismatches
    }

    /// Compares the items with the same path element. Several items on one side form one leaf.
    fn items(
        &mut self,
        list: &'s List,
        element: PathElement,
        old: &[&Value],
        new: &[&Value],
    ) -> Mismatches {
        let (first_old, first_new) = (old.first().copied(), new.first().copied());
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => self.below(element, list.element, first_old, first_new),
            (2.., 2..) => {
                let same =
                    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| equal(old, new));
                if !same {
                    self.mark(element, |found| &mut found.modified);
                }
                Mismatches::none()
            }
            (2.., _) => {
                let mut mismatches = Mismatches::none();
                if first_new.is_some() {
                    mismatches = self.below(element.clone(), list.element, None, first_new);
                }
                self.mark(element, |found| &mut found.removed);
                mismatches
            }
            (_, _) => {
                let mut mismatches = Mismatches::none();
                if first_old.is_some() {
                    mismatches = self.below(element.clone(), list.element, first_old, None);
                }
                self.mark(element, |found| &mut found.added);
                mismatches
            }
        }
    }

    fn mark(&mut self, element: PathElement, set: impl Fn(&mut Comparison) -> &mut Set) {
        self.path.push(element);
        set(&mut self.found).insert(&self.path);
        self.path.pop();
    }
}

/// Returns the items of a list; empty for any other value.
pub(super) fn items<'v>(side: Side<'v>) -> &'v [Value] {
    side.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the fields of an object; `None` for any other value.
pub(super) fn fields<'v>(side: Side<'v>) -> Option<&'v Object<String, Value>> {
    side.and_then(Value::as_object)
}
