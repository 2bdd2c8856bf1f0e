//! Merging of a partial object into a whole one (structured-merge-diff, `typed/merge.go`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map as Object, Value};

use super::compare::{fields, items};
use super::validate::{no_part, scalar};
use super::{Mismatches, item};
use crate::path::PathElement;
use crate::schema::{Choice, List, Map, Part, Schema, TypeId};

/// Merges `config` into `live`.
pub(super) fn merge(schema: &Schema, live: &Value, config: &Value) -> Result<Value, Mismatches> {
    let (merged, mismatches) = Merge { schema }.visit(schema.root(), live, config);
    mismatches.or_else_ok(merged.unwrap_or_default())
}

struct Merge<'s> {
    schema: &'s Schema,
}

/// Merged value (`None` if there is none), and the mismatches.
type Merged = (Option<Value>, Mismatches);

impl<'s> Merge<'s> {
    /// Merges two values. A value that only one side has is taken unchanged.
    fn either(&self, of: TypeId, live: Option<&Value>, config: Option<&Value>) -> Merged {
        match (live, config) {
            (Some(live), Some(config)) => self.visit(of, live, config),
            (one, None) | (None, one) => (one.cloned(), Mismatches::none()),
        }
    }

    fn visit(&self, of: TypeId, live: &Value, config: &Value) -> Merged {
        let atom = self.schema.atom(of);
        let (one, other) = (atom.choose(Some(live)), atom.choose(Some(config)));
        let mut mismatches = Mismatches::none();
        if one != other {
            mismatches = self.part(of, one, live, config).1;
        }
        let (merged, more) = self.part(of, other, live, config);
        mismatches.append(more);
        (merged, mismatches)
    }

    fn part(&self, of: TypeId, choice: Choice, live: &Value, config: &Value) -> Merged {
        let leaf = || (Some(config.clone()), Mismatches::none());
        match self.schema.atom(of).part(choice) {
            Part::Scalar(kind) => {
                let mut left = scalar(kind, Some(live), "lhs: ");
                let right = scalar(kind, Some(config), "rhs: ");
                if !left.is_empty() && !right.is_empty() {
                    left.append(right);
                    return (None, left);
                }
                leaf()
            }
            Part::List(list) => {
                let (left, right) = (items(Some(live)), items(Some(config)));
                if list.atomic || (left.is_empty() && right.is_empty()) {
                    return leaf();
                }
                self.list(list, left, right)
            }
            Part::Map(map) => {
                let (left, right) = (fields(Some(live)), fields(Some(config)));
                let is_empty =
                    |side: Option<&Object<String, Value>>| side.is_none_or(Object::is_empty);
                if map.atomic || (is_empty(left) && is_empty(right)) {
                    return leaf();
                }
                self.map(map, left, right)
            }
            Part::Nothing => (None, no_part()),
        }
    }

    fn map(
        &self,
        map: &Map,
        live: Option<&Object<String, Value>>,
        config: Option<&Object<String, Value>>,
    ) -> Merged {
        let mut mismatches = Mismatches::none();
        let mut out = Object::new();
        let names = live.into_iter().flatten().chain(config.into_iter().flatten());
        let names: BTreeSet<_> = names.map(|(name, _)| name).collect();
        for name in names {
            let left = live.and_then(|live| live.get(name));
            let right = config.and_then(|config| config.get(name));
            let (merged, wrong) = match map.field(name) {
                Some(of) => self.either(of, left, right),
                None => (None, no_part()),
            };
            mismatches.append(wrong.below(|| PathElement::field(name).to_string()));
            if let Some(merged) = merged {
                out.insert(name.clone(), merged);
            }
        }
        ((!out.is_empty()).then_some(Value::Object(out)), mismatches)
    }

    fn list(&self, list: &'s List, live: &[Value], config: &[Value]) -> Merged {
        let mut mismatches = Mismatches::none();
        let right = self.index(list, config, false, &mut mismatches);
        let left = self.index(list, live, true, &mut mismatches);
        if !mismatches.is_empty() {
            return (None, mismatches);
        }
        let mut zip = Zip { merge: self, list, live, left, right, out: Vec::new() };
        zip.run();
        ((!zip.out.is_empty()).then_some(Value::Array(zip.out)), mismatches)
    }

    fn index<'v>(
        &self,
        list: &List,
        items: &'v [Value],
        duplicates: bool,
        mismatches: &mut Mismatches,
    ) -> Index<'v> {
        let mut index = Index { order: Vec::new(), items: BTreeMap::new() };
        for (at, one) in items.iter().enumerate() {
            let element = match item::element(self.schema, list, one) {
                Ok(element) => element,
                Err(why) => {
                    mismatches.append(Mismatches::one(format!("element {at}: {why}")));
                    continue;
                }
            };
            if !index.items.contains_key(&element) {
                index.items.insert(element.clone(), one);
            } else if duplicates {
                // A duplicate item is not merged with a new one but replaced.
                index.items.insert(element.clone(), &Value::Null);
            } else {
                let message = format!("duplicate entries for key {element}");
                mismatches.append(Mismatches::one(message));
                continue;
            }
            index.order.push(element);
        }
        index
    }
}

/// Items of a list by path element, with their order.
struct Index<'v> {
    order: Vec<PathElement>,
    items: BTreeMap<PathElement, &'v Value>,
}

impl Index<'_> {
    fn has(&self, element: &PathElement) -> bool {
        self.items.contains_key(element)
    }
}

/// Merge of two lists. Items of both lists get the order of the configuration; other items of the
/// live list keep their position.
struct Zip<'a, 's> {
    merge: &'a Merge<'s>,
    list: &'s List,
    live: &'a [Value],
    left: Index<'a>,
    right: Index<'a>,
    out: Vec<Value>,
}

impl Zip<'_, '_> {
    fn run(&mut self) {
        let right_order = std::mem::take(&mut self.right.order);
        let left_order = std::mem::take(&mut self.left.order);
        let mut shared: VecDeque<&PathElement> =
            right_order.iter().filter(|element| self.left.has(element)).collect();
        let mut next = shared.pop_front();
        let mut done: BTreeSet<&PathElement> = BTreeSet::new();
        let (mut l, mut r) = (0, 0);
        while l < left_order.len() || r < right_order.len() {
            if let (Some(left), Some(right)) = (left_order.get(l), right_order.get(r)) {
                if left == right {
                    self.take_both(right);
                    done.insert(right);
                    l += 1;
                    r += 1;
                    next = shared.pop_front();
                    continue;
                }
                if self.right.has(left) && next.is_some_and(|next| next != left) {
                    // The item is shared, but another shared item must come first.
                    l += 1;
                    continue;
                }
            }
            if let Some(left) = left_order.get(l) {
                if !self.right.has(left) {
                    self.out.extend(self.live.get(l).cloned());
                    l += 1;
                    continue;
                }
                if done.contains(left) {
                    l += 1;
                }
            }
            if let Some(right) = right_order.get(r) {
                self.take_both(right);
                done.insert(right);
                r += 1;
                if next == Some(right) {
                    next = shared.pop_front();
                }
            }
        }
    }

    /// Adds the item of the configuration, merged into the live item if there is one. Ignores
    /// mismatches below, because the validation of both values reported them.
    fn take_both(&mut self, element: &PathElement) {
        let (left, right) = (self.left.items.get(element), self.right.items.get(element));
        let (merged, _) = self.merge.either(self.list.element, left.copied(), right.copied());
        self.out.extend(merged);
    }
}
