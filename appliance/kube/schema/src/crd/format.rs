//! Warnings about string formats that no check exists for.

use std::collections::BTreeSet;

use serde_json::Value;

use super::check::versions;
use crate::node::{Additional, Node};
use crate::schema::Schema;

/// Returns upstream's warnings about unknown string formats in `new` that `old` does not have.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(unrecognised).unwrap_or_default();
    let now = unrecognised(new);
    let added = now.difference(&before);
    added.map(|format| format!("unrecognized format {}", go_text::quoted(format))).collect()
}

fn unrecognised(object: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for version in versions(object) {
        let source = version.pointer("/schema/openAPIV3Schema");
        if let Some(schema) = source.and_then(|source| Schema::parse(source).ok()) {
            collect(schema.root(), &mut found);
        }
    }
    found
}

fn collect(node: &Node, found: &mut BTreeSet<String>) {
    if node.kind == "string" && !node.format().is_empty() && node.limits.format.is_none() {
        found.insert(node.format().to_owned());
    }
    let additional = match &node.additional {
        Some(Additional::Of(below)) => Some(below.as_ref()),
        _ => None,
    };
    let below = node.properties.values().chain(node.items()).chain(additional);
    let nested = [&node.all_of, &node.any_of, &node.one_of].into_iter().flatten();
    for node in below.chain(nested).chain(node.not.as_deref()) {
        collect(node, found);
    }
}
