//! Conversion of old sets of fields after a schema change (structured-merge-diff,
//! `typed/reconcile_schema.go`). If a value became a leaf, the owner of fields below it now owns
//! the leaf. If a leaf became a container, sets stay unchanged.

use crate::path::PathElement;
use crate::schema::{List, Map, Part, Schema, TypeId};
use crate::set::Set;

/// Converts a set to the current schema; `None` if the set stays unchanged.
pub(crate) fn reconcile(schema: &Schema, set: &Set) -> Option<Set> {
    let mut walk = Walk { schema, path: Vec::new(), leaves: Set::default(), changed: false };
    walk.visit(schema.root(), Some(set), false);
    walk.changed.then(|| set.recursive_difference(&walk.leaves).union(&walk.leaves))
}

struct Walk<'s> {
    schema: &'s Schema,
    path: Vec<PathElement>,
    /// Fields that have become leaves.
    leaves: Set,
    changed: bool,
}

impl<'s> Walk<'s> {
    /// Visits a field. `is_leaf` is true if the set has the field but no fields below it.
    fn visit(&mut self, of: TypeId, set: Option<&Set>, is_leaf: bool) {
        match self.schema.atom(of).part_for(None) {
            Part::List(list) => self.list(list, set, is_leaf),
            Part::Map(map) => self.map(map, set, is_leaf),
            Part::Scalar(_) | Part::Nothing => {}
        }
    }

    fn list(&mut self, list: &'s List, set: Option<&Set>, is_leaf: bool) {
        if list.atomic && !is_leaf {
            self.becomes_leaf();
            return;
        }
        for (element, is_member) in set.into_iter().flat_map(Set::elements) {
            self.below(element, list.element, set, is_member);
        }
    }

    fn map(&mut self, map: &'s Map, set: Option<&Set>, is_leaf: bool) {
        if self.schema.is_untyped_map(map) {
            return;
        }
        if map.atomic && !is_leaf {
            if set.is_some_and(|set| !set.is_empty()) {
                self.becomes_leaf();
            }
            return;
        }
        for (element, is_member) in set.into_iter().flat_map(Set::elements) {
            let of = match element {
                PathElement::Field(name) => map.field(name),
                _ => map.element,
            };
            if let Some(of) = of {
                self.below(element, of, set, is_member);
            }
        }
    }

    fn below(&mut self, element: &PathElement, of: TypeId, set: Option<&Set>, is_member: bool) {
        let inside = set.and_then(|set| set.inside(element));
        self.path.push(element.clone());
        self.visit(of, inside, is_member && inside.is_none());
        self.path.pop();
    }

    fn becomes_leaf(&mut self) {
        self.leaves.insert(&self.path);
        self.changed = true;
    }
}
