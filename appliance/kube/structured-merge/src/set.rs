//! Sets of fields, stored as trees (structured-merge-diff, `fieldpath/set.go`).

mod fields_v1;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::path::{Path, PathElement};
use crate::schema::{Schema, TypeId};

pub use fields_v1::UnreadableSet;

/// Set of fields. A field can be in the set without its parents and without the fields below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// Fields of this level that are in the set.
    members: BTreeSet<PathElement>,
    /// Fields of this level that have members of the set below them.
    children: BTreeMap<PathElement, Set>,
}

impl Set {
    /// Creates the set of the fields at `paths`.
    pub fn of(paths: impl IntoIterator<Item = Path>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.0);
        }
        set
    }

    /// Adds the field without its parents; ignores the path of the whole object.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut at = self;
        for element in parents {
            at = at.children.entry(element.clone()).or_default();
        }
        at.members.insert(last.clone());
    }

    /// Returns true if the field is in the set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let parent = parents.iter().try_fold(self, |at, element| at.children.get(element));
        parent.is_some_and(|parent| parent.members.contains(last))
    }

    pub(crate) fn has_member(&self, element: &PathElement) -> bool {
        self.members.contains(element)
    }

    /// Returns the set below `element`, with relative paths; `None` if it is empty.
    pub(crate) fn inside(&self, element: &PathElement) -> Option<&Set> {
        self.children.get(element)
    }

    /// Returns the elements of this level: non-members with members below (false), then members.
    pub(crate) fn elements(&self) -> impl Iterator<Item = (&PathElement, bool)> {
        let only_inside = self.children.keys().filter(|element| !self.members.contains(element));
        only_inside
            .map(|element| (element, false))
            .chain(self.members.iter().map(|element| (element, true)))
    }

    /// Returns true if no field is in the set.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// Returns the number of fields in the set.
    pub fn len(&self) -> usize {
        self.members.len() + self.children.values().map(Self::len).sum::<usize>()
    }

    /// Returns the fields that are in this set, in `other`, or in both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.extend(other);
        union
    }

    /// Adds the fields of `other`.
    pub fn extend(&mut self, other: &Self) {
        self.members.extend(other.members.iter().cloned());
        for (element, inside) in &other.children {
            self.children.entry(element.clone()).or_default().extend(inside);
        }
    }

    /// Returns the fields that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let shared = self.children.iter().filter_map(|(element, inside)| {
            let inside = inside.intersection(other.children.get(element)?);
            (!inside.is_empty()).then(|| (element.clone(), inside))
        });
        Self {
            members: self.members.intersection(&other.members).cloned().collect(),
            children: shared.collect(),
        }
    }

    /// Returns this set minus the fields of `other`. Fields below a field of `other` stay.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.without(other, false)
    }

    /// Returns this set minus the fields of `other` and all fields below them.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.without(other, true)
    }

    fn without(&self, other: &Self, recursive: bool) -> Self {
        let left = self.children.iter().filter_map(|(element, inside)| {
            if recursive && other.members.contains(element) {
                return None;
            }
            let inside = match other.children.get(element) {
                Some(taken) => {
                    Some(inside.without(taken, recursive)).filter(|left| !left.is_empty())?
                }
                None => inside.clone(),
            };
            Some((element.clone(), inside))
        });
        Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: left.collect(),
        }
    }

    /// Adds every declared field that has members below it as a member. The owner of `.a.b` in a
    /// struct also owns `.a`; in a map it does not.
    #[must_use]
    pub(crate) fn with_named_fields(&self, schema: &Schema, of: Option<TypeId>) -> Self {
        let atom = of.map(|of| schema.atom(of));
        let map = atom.and_then(|atom| atom.map.as_ref());
        let list = atom.and_then(|atom| atom.list.as_ref());
        let mut named = Self { members: self.members.clone(), children: BTreeMap::new() };
        for (element, inside) in &self.children {
            let inner = match element {
                PathElement::Field(name) => {
                    let field = map.and_then(|map| map.fields.get(name));
                    if field.is_some() {
                        named.members.insert(element.clone());
                    }
                    let rest = || map.and_then(|map| map.element);
                    field.map(|field| field.of).or_else(rest)
                }
                PathElement::Key(_) => list.map(|list| list.element),
                PathElement::Value(_) | PathElement::Index(_) => None,
            };
            named.children.insert(element.clone(), inside.with_named_fields(schema, inner));
        }
        named
    }

    /// Calls `f` with every field: first the members of a level, then the fields below.
    pub fn each(&self, f: &mut dyn FnMut(&[PathElement])) {
        self.each_below(&mut Vec::new(), f);
    }

    fn each_below(&self, path: &mut Vec<PathElement>, f: &mut dyn FnMut(&[PathElement])) {
        for member in &self.members {
            path.push(member.clone());
            f(path);
            path.pop();
        }
        for (element, inside) in &self.children {
            path.push(element.clone());
            inside.each_below(path, f);
            path.pop();
        }
    }

    /// Returns the first paths in the order of [`Set::each`], at most `most`.
    pub(crate) fn first_paths(&self, most: usize) -> Vec<Path> {
        let mut paths = Vec::new();
        self.each(&mut |path| {
            if paths.len() < most {
                paths.push(Path(path.to_vec()));
            }
        });
        paths
    }

    /// Returns the paths of all fields, in the order of [`Set::each`].
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.each(&mut |path| paths.push(Path(path.to_vec())));
        paths
    }
}

/// Prints one field per line.
impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.paths().iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests;
