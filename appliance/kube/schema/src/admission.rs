//! Admission of a schema: it must be structural, with valid keywords and valid defaults.

mod keyword;
mod structural;

use serde_json::Value;

use crate::field_error::FieldError;
use crate::node::Node;
use crate::prune::{META_FIELDS, prune_default};
use crate::rules::RuleTree;
use crate::schema::Schema;
use crate::{fault, object_meta, rules, validate};

/// Returns all mistakes in an `openAPIV3Schema`; `path` is its path in the definition.
pub fn check_structural(source: &Value, path: &str) -> Vec<FieldError> {
    let schema = match Schema::parse(source) {
        Ok(schema) => schema,
        Err(error) => return vec![FieldError::invalid(path, &"".into(), error.to_string())],
    };
    let root = schema.root();
    // For a schema without a structural form, only mistakes in its keywords are reported.
    let has_form =
        !root_or_below(root, &|node| !node.unsupported.is_empty() || node.refuses_unknown);
    let mut errors = Vec::new();
    if has_form {
        errors = structural::check(root, path);
        if errors.is_empty() {
            check_defaults(root, Spot { is_root: true, inside_meta: false }, path, &mut errors);
        }
    }
    let is_sound = has_form && errors.is_empty();
    let wrong_keywords = keyword::check(root, path);
    if is_sound && wrong_keywords.is_empty() {
        errors.extend(rules::admit(root, path));
    }
    errors.extend(wrong_keywords);
    if errors.is_empty() && root_or_below(root, &|node| node.unsupported.contains(&"$schema")) {
        let detail = "OpenAPIV3Schema 'schema' is not supported";
        errors.push(FieldError::invalid(path, &"".into(), detail));
    }
    errors
}

fn root_or_below(node: &Node, holds: &dyn Fn(&Node) -> bool) -> bool {
    holds(node)
        || node.properties.values().any(|below| root_or_below(below, holds))
        || node.items().is_some_and(|below| root_or_below(below, holds))
        || node.additional_node().is_some_and(|below| root_or_below(below, holds))
        || node.not.as_deref().is_some_and(|below| root_or_below(below, holds))
        || [&node.all_of, &node.any_of, &node.one_of]
            .into_iter()
            .flatten()
            .any(|below| root_or_below(below, holds))
}

/// Position of a default in a schema.
#[derive(Clone, Copy)]
struct Spot {
    is_root: bool,
    /// True in the type or metadata of an object, whose fields the schema does not list.
    inside_meta: bool,
}

/// Checks that each default is valid for its own schema (apiextensions `defaulting/validation.go`).
fn check_defaults(node: &Node, spot: Spot, path: &str, errors: &mut Vec<FieldError>) {
    let inside_meta = spot.inside_meta && !node.embedded;
    let spot = Spot { inside_meta, ..spot };
    if let Some(default) = &node.default {
        check_default(node, spot, default, &format!("{path}.default"), errors);
    }
    let below = Spot { is_root: false, inside_meta };
    // Upstream does not check defaults below additionalProperties either.
    if let Some(items) = node.items() {
        check_defaults(items, below, &format!("{path}.items"), errors);
    }
    for (name, property) in &node.properties {
        let is_meta = (spot.is_root || node.embedded) && META_FIELDS.contains(&name.as_str());
        let below = Spot { inside_meta: inside_meta || is_meta, ..below };
        check_defaults(property, below, &format!("{path}.properties[{name}]"), errors);
    }
}

fn check_default(
    node: &Node,
    spot: Spot,
    default: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if !spot.inside_meta {
        let mut pruned = default.clone();
        prune_default(&mut pruned, node, spot.is_root || node.embedded);
        if pruned != *default {
            errors.push(FieldError::invalid(path, default, "must not have unknown fields"));
        }
    }
    let mut found = Vec::new();
    object_meta::check_at(node, path, default, &mut found);
    if found.is_empty() {
        found = fault::field_errors(path, validate::check(node, "", default, None));
    }
    if found.is_empty()
        && let Some(tree) = RuleTree::of(node)
    {
        // A default is both new and kept: rules receive it also as the old value.
        found = rules::check(&tree, node, default, Some(default), path).errors;
        if found.is_empty() {
            found = rules::check(&tree, node, default, None, path).errors;
        }
    }
    errors.append(&mut found);
}
