//! Check that a schema is structural: every value has a type, and `allOf`, `anyOf`, `oneOf` and
//! `not` only restrict it (apiextensions `pkg/apiserver/schema/{validation,complete}.go`).

use serde_json::Value;

use crate::field_error::FieldError;
use crate::node::{Additional, Node};

/// Keyword that must not be set in `allOf`, `anyOf`, `oneOf` and `not`.
type Forbidden = (&'static str, &'static str, fn(&Node) -> bool);

const NESTED_FORBIDDEN: [Forbidden; 12] = [
    ("type", "must be empty to be structural", |node| !node.kind.is_empty()),
    ("default", "must be undefined to be structural", |node| node.default.is_some()),
    ("title", "must be empty to be structural", |node| !node.title.is_empty()),
    ("description", "must be empty to be structural", |node| !node.description.is_empty()),
    ("nullable", "must be false to be structural", |node| node.nullable),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural", |node| {
        node.preserve_unknown
    }),
    ("x-kubernetes-embedded-resource", "must be false to be structural", |node| node.embedded),
    ("x-kubernetes-int-or-string", "must be false to be structural", |node| node.int_or_string),
    ("x-kubernetes-list-map-keys", "must be empty to be structural", |node| {
        !node.list_map_keys.is_empty()
    }),
    ("x-kubernetes-list-type", "must be undefined to be structural", |node| {
        node.list_type.is_some()
    }),
    ("x-kubernetes-map-type", "must be undefined to be structural", |node| node.map_type.is_some()),
    ("x-kubernetes-validations", "must be empty to be structural", |node| !node.rules.is_empty()),
];

/// Position of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Returns all reasons why the schema `root` at `path` is not structural, sorted by text.
pub(crate) fn check(root: &Node, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_structure(root, Level::Root, path, &mut errors);
    check_complete(root, Some(root), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

/// Returns the path of a property's schema; `path` is the path of the object's schema.
pub(crate) fn property(path: &str, name: &str) -> String {
    format!("{path}.properties[{name}]")
}

fn check_structure(node: &Node, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    match node.items() {
        Some(items) => check_structure(items, Level::Item, &format!("{path}.items"), errors),
        None if node.kind == "array" => {
            errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
        }
        None => {}
    }
    for (name, below) in &node.properties {
        check_structure(below, Level::Field, &property(path, name), errors);
    }
    if let Some(additional) = &node.additional {
        let place = format!("{path}.additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&place, "must not be used at the root"));
        }
        if let Additional::Of(below) = additional {
            check_structure(below, Level::Field, &place, errors);
        }
    }
    check_extensions(node, path, errors);
    let int_or_string = [bare("integer"), bare("string")];
    let skip_any_of = node.any_of == int_or_string;
    let skip_first_all_of = node.all_of.first().is_some_and(|first| first.any_of == int_or_string);
    check_values(node, skip_any_of, skip_first_all_of, path, errors);
    check_type(node, level, path, errors);
    check_metadata(node, level, path, errors);
}

/// Creates a schema with only a type.
fn bare(kind: &str) -> Node {
    Node { kind: kind.to_owned(), ..Node::default() }
}

fn check_extensions(node: &Node, path: &str, errors: &mut Vec<FieldError>) {
    let detail = "must be false if x-kubernetes-int-or-string is true";
    for (name, is_set) in [
        ("x-kubernetes-preserve-unknown-fields", node.preserve_unknown),
        ("x-kubernetes-embedded-resource", node.embedded),
    ] {
        if node.int_or_string && is_set {
            errors.push(FieldError::invalid(format!("{path}.{name}"), &Value::from(true), detail));
        }
    }
}

fn check_type(node: &Node, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let place = format!("{path}.type");
    let kind = Value::from(node.kind.as_str());
    if node.embedded && node.kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match node.kind.is_empty() {
            true => FieldError::required(&place, detail),
            false => FieldError::invalid(&place, &kind, detail),
        });
    } else if node.kind.is_empty() && !node.int_or_string && !node.preserve_unknown {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&place, detail));
    }
    if node.embedded && node.additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), detail));
    }
    if level == Level::Root && !node.kind.is_empty() && node.kind != "object" {
        errors.push(FieldError::invalid(&place, &kind, "must be object at the root"));
    }
}

fn check_metadata(node: &Node, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let is_object = level == Level::Root || node.embedded;
    for name in ["kind", "apiVersion"] {
        if let Some(below) = node.properties.get(name).filter(|_| is_object)
            && below.kind != "string"
        {
            let place = format!("{}.type", property(path, name));
            let kind = Value::from(below.kind.as_str());
            errors.push(FieldError::invalid(place, &kind, "must be string"));
        }
    }
    if let Some(metadata) = node.properties.get("metadata") {
        let place = property(path, "metadata");
        if is_object && metadata.kind != "object" {
            let kind = Value::from(metadata.kind.as_str());
            errors.push(FieldError::invalid(format!("{place}.type"), &kind, "must be object"));
        }
        if level == Level::Root && !says_names_only(metadata) {
            let detail = "must not specify anything other than name and generateName, but \
                          metadata is implicitly specified";
            errors.push(FieldError::forbidden(place, detail));
        }
    }
    if node.embedded && !node.preserve_unknown && node.properties.is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), detail));
    }
}

/// Returns true if a schema of metadata only restricts `name` and `generateName`.
fn says_names_only(metadata: &Node) -> bool {
    let names = ["name", "generateName"];
    let only_names = metadata.properties.keys().all(|name| names.contains(&name.as_str()));
    let mut rest = metadata.clone();
    if only_names {
        rest.properties.clear();
    }
    rest.kind.clear();
    rest.default = None;
    rest == Node::default()
}

/// Checks value validations. The `skip_…` flags allow the two notations of an int-or-string.
fn check_values(
    node: &Node,
    skip_any_of: bool,
    skip_first_all_of: bool,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if !skip_any_of {
        for (index, nested) in node.any_of.iter().enumerate() {
            check_nested(nested, false, &format!("{path}.anyOf[{index}]"), errors);
        }
    }
    for (index, nested) in node.all_of.iter().enumerate() {
        let skip = skip_first_all_of && index == 0;
        check_nested(nested, skip, &format!("{path}.allOf[{index}]"), errors);
    }
    for (index, nested) in node.one_of.iter().enumerate() {
        check_nested(nested, false, &format!("{path}.oneOf[{index}]"), errors);
    }
    if let Some(not) = &node.not {
        check_nested(not, false, &format!("{path}.not"), errors);
    }
    if let Some(pattern) = &node.limits.pattern
        && let Some(error) = pattern.error()
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        let place = format!("{path}.pattern");
        errors.push(FieldError::invalid(place, &Value::from(pattern.text()), detail));
    }
}

fn check_nested(node: &Node, skip_any_of: bool, path: &str, errors: &mut Vec<FieldError>) {
    check_values(node, skip_any_of, false, path, errors);
    if let Some(items) = node.items() {
        check_nested(items, false, &format!("{path}.items"), errors);
    }
    for (name, below) in &node.properties {
        check_nested(below, false, &property(path, name), errors);
    }
    // `additionalProperties: false` has the same effect as pruning, and is therefore accepted.
    if matches!(node.additional, Some(Additional::Of(_) | Additional::Any(true))) {
        let place = format!("{path}.additionalProperties");
        errors.push(FieldError::forbidden(place, "must be undefined to be structural"));
    }
    for (name, detail, is_set) in NESTED_FORBIDDEN {
        if is_set(node) {
            errors.push(FieldError::forbidden(format!("{path}.{name}"), detail));
        }
    }
    if node.properties.contains_key("metadata") {
        let place = property(path, "metadata");
        errors.push(FieldError::forbidden(place, "must not be specified in a nested context"));
    }
}

/// Checks that each value validation in `values` concerns a field of the structure `node`.
fn check_complete(
    values: &Node,
    node: Option<&Node>,
    node_path: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(node) = node else {
        let detail = format!("because it is defined in {path}");
        errors.push(FieldError::required(node_path, detail));
        return;
    };
    let mut nested = Vec::new();
    nested.extend(values.not.as_deref().map(|not| (not, format!("{path}.not"))));
    for (word, alternatives) in
        [("allOf", &values.all_of), ("anyOf", &values.any_of), ("oneOf", &values.one_of)]
    {
        let each = alternatives.iter().enumerate();
        nested.extend(each.map(|(index, one)| (one, format!("{path}.{word}[{index}]"))));
    }
    for (one, place) in nested {
        check_nested_complete(one, Some(node), node_path, &place, errors);
    }
}

fn check_nested_complete(
    values: &Node,
    node: Option<&Node>,
    node_path: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    check_complete(values, node, node_path, path, errors);
    let Some(node) = node else { return };
    if let Some(items) = values.items() {
        let (below, place) = (format!("{node_path}.items"), format!("{path}.items"));
        check_nested_complete(items, node.items(), &below, &place, errors);
    }
    for (name, nested) in &values.properties {
        let (below, place) = (property(node_path, name), property(path, name));
        check_nested_complete(nested, node.properties.get(name), &below, &place, errors);
    }
}
