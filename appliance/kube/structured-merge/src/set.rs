//! Sets of fields, as trees (structured-merge-diff, `fieldpath/set.go`).

mod fields_v1;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::path::{Path, PathElement};
use crate::schema::{Schema, TypeId};

pub use fields_v1::UnreadableSet;

/// A set of fields. Holding a field says nothing about the fields inside it or around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// The fields of this level that are in the set.
    members: BTreeSet<PathElement>,
    /// The fields of this level that have fields of the set inside.
    children: BTreeMap<PathElement, Set>,
}

impl Set {
    /// A set of `paths`.
    pub fn of(paths: impl IntoIterator<Item = Path>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.0);
        }
        set
    }

    /// Adds the field, not its parents. The path of the whole object is nobody's and ignored.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut at = self;
        for element in parents {
            at = at.children.entry(element.clone()).or_default();
        }
        at.members.insert(last.clone());
    }

    /// Whether the field is in the set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let parent = parents.iter().try_fold(self, |at, element| at.children.get(element));
        parent.is_some_and(|parent| parent.members.contains(last))
    }

    pub(crate) fn has_member(&self, element: &PathElement) -> bool {
        self.members.contains(element)
    }

    /// The set of the fields inside `element`, relative to it.
    pub(crate) fn inside(&self, element: &PathElement) -> Option<&Set> {
        self.children.get(element)
    }

    /// The elements of this level: those that only have fields inside, then the members.
    pub(crate) fn elements(&self) -> impl Iterator<Item = (&PathElement, bool)> {
        let only_inside = self.children.keys().filter(|element| !self.members.contains(element));
        only_inside
            .map(|element| (element, false))
            .chain(self.members.iter().map(|element| (element, true)))
    }

    /// Whether no field is in the set.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// How many fields are in the set.
    pub fn len(&self) -> usize {
        self.members.len() + self.children.values().map(Self::len).sum::<usize>()
    }

    /// The fields in either.
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

    /// The fields in both.
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

    /// The fields of this set that are not in `other`. A field stays when only its parent is in
    /// `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.without(other, false)
    }

    /// The fields of this set that are neither in `other` nor inside a field of `other`.
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

    /// The set and, as members, every declared field that has fields of the set inside it: whoever
    /// has `.a.b` of a struct has `.a` too, whoever has `.a.b` of a map has not.
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

    /// Calls `f` with every field: the members of a level, then those inside.
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

    /// The first paths in the order of [`Set::each`], `most` at most.
    pub(crate) fn first_paths(&self, most: usize) -> Vec<Path> {
        let mut paths = Vec::new();
        self.each(&mut |path| {
            if paths.len() < most {
                paths.push(Path(path.to_vec()));
            }
        });
        paths
    }

    /// Every field's path, in the order of [`Set::each`].
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.each(&mut |path| paths.push(Path(path.to_vec())));
        paths
    }
}

/// One field per line.
impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.paths().iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests;
