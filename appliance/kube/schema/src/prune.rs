//! Pruning: removal of fields that the schema does not have (apiextensions
//! `schema/pruning/algorithm.go`).

mod former;

use serde_json::Value;

use self::former::Former;
use crate::node::{Additional, Node};
use crate::object_meta;
use crate::schema::Schema;

/// Fields of every Kubernetes object.
pub(crate) const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Maximum number of unknown fields that are reported; all unknown fields are removed.
const MAX_REPORTED: usize = 1_000;

impl Schema {
    /// Removes every field that the schema does not have, except the object's own type and
    /// metadata. Returns upstream's messages, sorted: `unknown field "spec.x"`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        words(dropped_of_object(object, &self.root))
    }

    /// Removes every field that the schema does not have, without a report.
    pub fn prune_quietly(&self, object: &mut Value) {
        let mut pruner = Pruner { reports: false, ..Pruner::new("") };
        pruner.prune(object, Some(&self.root), true, &Former::default());
    }

    /// Prunes as [`Schema::prune`] a new state of `old`, which was written with a wider schema.
    /// Fields that only the wider schema has keep their value in `old`.
    pub fn prune_beside(&self, object: &mut Value, old: &Value) -> Vec<String> {
        let mut pruner = Pruner::new("");
        pruner.prune(object, Some(&self.root), true, &Former::of(old));
        words(pruner.dropped)
    }
}

/// Returns upstream's messages for removed fields, sorted.
pub(crate) fn words(mut dropped: Vec<String>) -> Vec<String> {
    dropped.sort();
    dropped.iter().map(|path| format!("unknown field {}", go_text::quoted(path))).collect()
}

/// Removes fields that `node` does not have from the value at `path`; returns their paths.
pub(crate) fn dropped(value: &mut Value, node: &Node, path: &str) -> Vec<String> {
    let mut pruner = Pruner::new(path);
    pruner.prune(value, Some(node), false, &Former::default());
    pruner.dropped
}

/// Removes unknown fields from a default, without a report. Its metadata stays unchanged.
pub(crate) fn prune_default(value: &mut Value, node: &Node, is_object: bool) {
    let mut pruner = Pruner { cleans_metadata: false, reports: false, ..Pruner::new("") };
    pruner.prune(value, Some(node), is_object, &Former::default());
}

/// Prunes as [`dropped`] a whole object; its type and metadata stay.
pub(crate) fn dropped_of_object(object: &mut Value, node: &Node) -> Vec<String> {
    let mut pruner = Pruner::new("");
    pruner.prune(object, Some(node), true, &Former::default());
    pruner.dropped
}

struct Pruner {
    path: String,
    dropped: Vec<String>,
    /// True if the paths of removed fields are reported.
    reports: bool,
    /// True if unknown fields are removed from the metadata of embedded resources.
    cleans_metadata: bool,
}

/// Step of a path.
#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

impl Pruner {
    fn new(path: &str) -> Self {
        let (path, dropped) = (path.to_owned(), Vec::new());
        Self { path, dropped, reports: true, cleans_metadata: true }
    }

    fn prune(&mut self, value: &mut Value, node: Option<&Node>, is_root: bool, old: &Former<'_>) {
        let Some(node) = node else { return self.prune_unknown(value, old) };
        let keeps_unknown = node.preserve_unknown;
        let keeps_meta = node.embedded || is_root;
        match value {
            Value::Object(map) => map.retain(|name, value| {
                if keeps_meta && META_FIELDS.contains(&name.as_str()) {
                    // The engine handles the object's own metadata.
                    if !is_root && name == "metadata" {
                        self.prune_metadata(value);
                    }
                    return true;
                }
                let below = match (node.properties.get(name), &node.additional) {
                    (Some(below), _) => Some(below),
                    (None, Some(Additional::Of(below))) => Some(below.as_ref()),
                    // Values allowed by `additionalProperties: true` have no schema.
                    (None, Some(Additional::Any(_))) => None,
                    (None, None) => return keeps_unknown || self.restore(name, value, old),
                };
                self.within(Step::Field(name), |pruner| {
                    pruner.prune(value, below, false, &old.field(name));
                });
                true
            }),
            Value::Array(items) => {
                let old = old.items(items);
                for (index, item) in items.iter_mut().enumerate() {
                    let old = old.item(index);
                    self.within(Step::Item(index), |pruner| match (keeps_unknown, node.items()) {
                        (true, None) => {}
                        (true, Some(below)) => pruner.prune_preserved(item, below, &old),
                        (false, below) => pruner.prune(item, below, false, &old),
                    });
                }
            }
            _ => {}
        }
    }

    /// Prunes an item of a list that preserves unknown fields; the item then preserves them too.
    fn prune_preserved(&mut self, value: &mut Value, node: &Node, old: &Former<'_>) {
        match value {
            Value::Object(map) => {
                for (name, value) in map.iter_mut() {
                    if node.embedded && META_FIELDS.contains(&name.as_str()) {
                        if name == "metadata" {
                            self.prune_metadata(value);
                        }
                        continue;
                    }
                    let known = node.properties.contains_key(name) || node.additional.is_some();
                    if known {
                        let below = node.child(name);
                        self.within(Step::Field(name), |pruner| {
                            pruner.prune(value, below, false, &old.field(name));
                        });
                    }
                }
            }
            Value::Array(items) => {
                if let Some(below) = node.items() {
                    let old = old.items(items);
                    for (index, item) in items.iter_mut().enumerate() {
                        let old = old.item(index);
                        self.within(Step::Item(index), |pruner| {
                            pruner.prune_preserved(item, below, &old);
                        });
                    }
                }
            }
            _ => {}
        }
    }

    /// Prunes a value without a schema: removes all fields of objects; scalars and lists stay.
    fn prune_unknown(&mut self, value: &mut Value, old: &Former<'_>) {
        match value {
            Value::Object(map) => map.retain(|name, value| self.restore(name, value, old)),
            Value::Array(items) => {
                let old = old.items(items);
                for (index, item) in items.iter_mut().enumerate() {
                    let old = old.item(index);
                    self.within(Step::Item(index), |pruner| pruner.prune_unknown(item, &old));
                }
            }
            _ => {}
        }
    }

    fn prune_metadata(&mut self, value: &mut Value) {
        if !self.cleans_metadata {
            return;
        }
        let path = format!("{}{}", self.path, field_step(&self.path, "metadata"));
        self.dropped.extend(object_meta::clean(value, &path));
    }

    /// Returns true if the unknown field `name` stays, because `old` has it. Replaces a changed
    /// value by the old one, because clients cannot change a field without a schema.
    fn restore(&mut self, name: &str, value: &mut Value, old: &Former<'_>) -> bool {
        let old = old.field(name);
        if old.has(value) {
            return true;
        }
        self.report(name);
        if let Some(only) = old.only() {
            only.clone_into(value);
            return true;
        }
        false
    }

    fn report(&mut self, name: &str) {
        let is_own_meta = self.path.is_empty() && META_FIELDS.contains(&name);
        if self.reports && !is_own_meta && self.dropped.len() < MAX_REPORTED {
            self.dropped.push(format!("{}{}", self.path, field_step(&self.path, name)));
        }
    }

    fn within(&mut self, step: Step<'_>, walk: impl FnOnce(&mut Self)) {
        if !self.reports {
            return walk(self);
        }
        let length = self.path.len();
        match step {
            Step::Field(name) => {
                let step = field_step(&self.path, name);
                self.path.push_str(&step);
            }
            Step::Item(index) => self.path.push_str(&format!("[{index}]")),
        }
        walk(self);
        self.path.truncate(length);
    }
}

fn field_step(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!(".{name}") }
}
