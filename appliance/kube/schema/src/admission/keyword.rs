//! Checks of a schema's keywords (apiextensions `apis/apiextensions/validation`:
//! `ValidateCustomResourceDefinitionOpenAPISchema`).

use std::collections::HashSet;

use serde_json::{Value, json};

use super::structural::property;
use crate::field_error::FieldError;
use crate::node::{Additional, Node, Rule};
use crate::prune::META_FIELDS;

/// Types of OpenAPI v3.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Values that `reason` of a CEL rule may have.
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Restrictions of a schema that apply to all schemas below it.
#[derive(Clone, Copy)]
struct Scope<'a> {
    /// Reason why defaults are forbidden here; `None` if they are allowed.
    no_defaults: Option<&'a str>,
    /// True in the type or metadata of an object.
    inside_meta: bool,
}

/// Returns mistakes in the keywords of a schema: forbidden keywords and invalid values.
pub(crate) fn check(root: &Node, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let scope = Scope { no_defaults: None, inside_meta: false };
    check_node(root, path, scope, true, &mut errors);
    errors
}

fn check_node(
    node: &Node,
    path: &str,
    scope: Scope<'_>,
    is_root: bool,
    errors: &mut Vec<FieldError>,
) {
    check_standard(node, path, scope, errors);
    if node.limits.unique_items {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes \
                      quadratic";
        errors.push(FieldError::forbidden(format!("{path}.uniqueItems"), detail));
    }
    check_additional(node, path, scope, errors);
    for (name, below) in &node.properties {
        let mut inner = scope;
        let in_top_level = format!("in top-level {name}");
        if (is_root || node.embedded) && META_FIELDS.contains(&name.as_str()) {
            inner.inside_meta = true;
            if is_root {
                inner.no_defaults = Some(&in_top_level);
            }
        }
        check_node(below, &property(path, name), inner, false, errors);
    }
    if let Some(not) = &node.not {
        check_node(not, &format!("{path}.not"), scope, false, errors);
    }
    for (word, alternatives) in
        [("allOf", &node.all_of), ("oneOf", &node.one_of), ("anyOf", &node.any_of)]
    {
        for (index, one) in alternatives.iter().enumerate() {
            check_node(one, &format!("{path}.{word}[{index}]"), scope, false, errors);
        }
    }
    if let Some(items) = node.items() {
        check_node(items, &format!("{path}.items"), scope, false, errors);
    }
    if node.refuses_unknown {
        let place = format!("{path}.x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(place, &json!(false), "must be true or undefined"));
    }
    check_map_type(node, path, errors);
    check_list_type(node, path, errors);
    check_list_keys(node, path, errors);
    check_key_presence(node, path, errors);
    for (index, rule) in node.rules.iter().enumerate() {
        let place = format!("{path}.x-kubernetes-validations[{index}]");
        check_rule_words(node, rule, &place, errors);
    }
}

fn check_standard(node: &Node, path: &str, scope: Scope<'_>, errors: &mut Vec<FieldError>) {
    let kind = node.kind.as_str();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(format!("{path}.type"), &kind.into(), &TYPES));
    }
    if let Some(reason) = scope.no_defaults.filter(|_| node.default.is_some()) {
        let detail = format!("must not be set {reason}");
        errors.push(FieldError::forbidden(format!("{path}.default"), detail));
    }
    for keyword in node.unsupported.iter().filter(|keyword| **keyword != "$schema") {
        let detail = match *keyword {
            "items" => "items must be a schema object and not an array".to_owned(),
            other => format!("{other} is not supported"),
        };
        errors.push(FieldError::forbidden(format!("{path}.{keyword}"), detail));
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(format!("{path}.type"), detail));
    }
    if scope.inside_meta && node.embedded {
        let place = format!("{path}.x-kubernetes-embedded-resource");
        errors.push(FieldError::forbidden(place, "must not be used inside of resource meta"));
    }
}

fn check_additional(node: &Node, path: &str, scope: Scope<'_>, errors: &mut Vec<FieldError>) {
    let Some(additional) = &node.additional else { return };
    let place = format!("{path}.additionalProperties");
    if !node.properties.is_empty() && !matches!(additional, Additional::Any(true)) {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(&place, detail));
    }
    if let Additional::Of(below) = additional {
        let mut inner = scope;
        if scope.inside_meta {
            // Pruning of such a default without a value would be ambiguous.
            inner.no_defaults = Some("inside additionalProperties applying to object metadata");
        }
        check_node(below, &place, inner, false, errors);
    }
}

/// Checks that `type` is `wanted`, which the keyword `extension` requires.
fn check_type_of(
    node: &Node,
    path: &str,
    wanted: &str,
    extension: &str,
    errors: &mut Vec<FieldError>,
) {
    let place = format!("{path}.type");
    let detail = format!("must be {wanted} if {extension} is specified");
    match node.kind.as_str() {
        "" => errors.push(FieldError::required(place, detail)),
        kind if kind == wanted => {}
        kind => errors.push(FieldError::invalid(place, &kind.into(), detail)),
    }
}

fn check_map_type(node: &Node, path: &str, errors: &mut Vec<FieldError>) {
    let Some(map_type) = node.map_type.as_deref() else { return };
    check_type_of(node, path, "object", "x-kubernetes-map-type", errors);
    let known = ["atomic", "granular"];
    if !known.contains(&map_type) {
        let place = format!("{path}.x-kubernetes-map-type");
        errors.push(FieldError::not_supported(place, &map_type.into(), &known));
    }
}

fn check_list_type(node: &Node, path: &str, errors: &mut Vec<FieldError>) {
    let Some(list_type) = node.list_type.as_deref() else { return };
    check_type_of(node, path, "array", "x-kubernetes-list-type", errors);
    if node.kind == "array"
        && list_type == "set"
        && let Some(items) = node.items()
    {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        // Upstream prints the list type in both cases.
        let shown = items.list_type.as_deref().map_or(Value::Null, Value::from);
        let is_atomic = |kind: &Option<String>| kind.as_deref() == Some("atomic");
        if items.kind == "array" && items.list_type.is_some() && !is_atomic(&items.list_type) {
            let place = format!("{path}.items.x-kubernetes-list-type");
            errors.push(FieldError::invalid(place, &shown, detail));
        }
        if items.kind == "object" && !is_atomic(&items.map_type) {
            let place = format!("{path}.items.x-kubernetes-map-type");
            errors.push(FieldError::invalid(place, &shown, detail));
        }
    }
    let known = ["atomic", "set", "map"];
    if !known.contains(&list_type) {
        let place = format!("{path}.x-kubernetes-list-type");
        errors.push(FieldError::not_supported(place, &list_type.into(), &known));
    }
}

fn check_list_keys(node: &Node, path: &str, errors: &mut Vec<FieldError>) {
    let list_type = node.list_type.as_deref();
    let type_place = format!("{path}.x-kubernetes-list-type");
    let keys_place = format!("{path}.x-kubernetes-list-map-keys");
    if !node.list_map_keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => errors.push(FieldError::required(type_place, detail)),
            Some("map") => {}
            Some(other) => errors.push(FieldError::invalid(type_place, &other.into(), detail)),
        }
    }
    if list_type != Some("map") {
        return;
    }
    if node.list_map_keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&keys_place, detail));
    }
    let Some(items) = node.items() else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{path}.items"), detail));
        return;
    };
    let kind = Value::from(items.kind.as_str());
    if items.kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{path}.items.type"), &kind, detail));
        return;
    }
    let mut seen = HashSet::new();
    for key in &node.list_map_keys {
        let refuse =
            |detail: &str| FieldError::invalid(&keys_place, &json!(node.list_map_keys), detail);
        match items.properties.get(key) {
            None => errors.push(refuse("entries must all be names of item properties")),
            Some(below) if matches!(below.kind.as_str(), "array" | "object") => {
                let place = format!("{}.type", property(&format!("{path}.items"), key));
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(place, &kind, detail));
            }
            Some(_) => {}
        }
        if !seen.insert(key) {
            errors.push(refuse("must not contain duplicate entries"));
        }
    }
}

/// Checks that the keys of a list of type map are required or have defaults in its items, and that
/// items of sets and maps are not nullable.
fn check_key_presence(node: &Node, path: &str, errors: &mut Vec<FieldError>) {
    let Some((list_type, items)) = node.list_type.as_deref().zip(node.items()) else { return };
    if !matches!(list_type, "set" | "map") {
        return;
    }
    if items.nullable {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(format!("{path}.items.nullable"), detail));
    }
    if list_type != "map" {
        return;
    }
    for key in &node.list_map_keys {
        let Some(below) = items.properties.get(key) else { continue };
        let place = property(&format!("{path}.items"), key);
        if !items.required.contains(key) && below.default.is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                          default or be a required property";
            errors.push(FieldError::required(format!("{place}.default"), detail));
        }
        if below.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{place}.nullable"), detail));
        }
    }
}

fn check_rule_words(node: &Node, rule: &Rule, path: &str, errors: &mut Vec<FieldError>) {
    let has_newlines = |text: &str| text.contains(['\n', '\r']);
    let text = |text: &str| Value::from(text);
    let message = rule.message.trim();
    let message_place = format!("{path}.message");
    if rule.rule.trim().is_empty() {
        errors.push(FieldError::required(format!("{path}.rule"), "rule is not specified"));
    } else if !rule.message.is_empty() && message.is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid(message_place, &text(&rule.message), detail));
    } else if has_newlines(message) {
        let detail = "must not contain line breaks";
        errors.push(FieldError::invalid(message_place, &text(&rule.message), detail));
    } else if has_newlines(rule.rule.trim()) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(message_place, detail));
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(format!("{path}.messageExpression"), detail));
    }
    if !rule.reason.is_empty() && !REASONS.contains(&rule.reason.as_str()) {
        let place = format!("{path}.reason");
        errors.push(FieldError::not_supported(place, &text(&rule.reason), &REASONS));
    }
    if rule.field_path.is_empty() {
        return;
    }
    let place = format!("{path}.fieldPath");
    let mut refuse = |detail: &str| {
        errors.push(FieldError::invalid(&place, &text(&rule.field_path), detail));
    };
    if rule.field_path.trim().is_empty() {
        refuse("must be non-empty if specified");
    }
    if has_newlines(&rule.field_path) {
        refuse("must not contain line breaks");
    }
    if crate::field_path::resolve(&rule.field_path, node, true).is_err() {
        refuse("must be a valid path");
    }
}
