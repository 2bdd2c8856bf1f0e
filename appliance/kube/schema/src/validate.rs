//! Validation of a value against a schema, with the order, messages and paths of kube-openapi's
//! `pkg/validation/validate`. An update may keep unchanged invalid values, as in apiextensions'
//! `pkg/apiserver/validation/ratcheting.go`.

mod combine;
mod list_type;
mod number;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::correlate::{OldItems, is_unchanged, old_field};
use crate::fault::{Fault, MAX_ERRORS, Outcome, field_errors};
use crate::field_error::{FieldError, Findings, MAX_SHOWN_BYTES, NO_PATH};
use crate::node::{Additional, Node};
use crate::schema::Schema;
use crate::{object_meta, parse, rules};

pub use number::canonical_numbers;

impl Schema {
    /// Checks an object after pruning and defaults, with embedded resources, list types and CEL
    /// rules, without the object's own metadata. With `old`, unchanged invalid values are accepted.
    pub fn check(&self, new: &Value, old: Option<&Value>) -> Findings {
        let mut errors = field_errors("", check(&self.root, "", new, old));
        object_meta::check_below(&self.root, new, &mut errors);
        list_type::check_changed(&self.root, new, old, &mut errors);
        self.check_rules(new, old, errors)
    }

    /// Returns only the errors of [`Self::check`].
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.check(new, old).errors
    }

    /// Checks an object of which only the status may change; paths begin at `status`, as upstream.
    pub fn check_status(&self, new: &Value, old: Option<&Value>) -> Findings {
        let mut errors = Vec::new();
        if let Some((node, status)) = self.root.child("status").zip(new.get("status")) {
            let old = old.and_then(|old| old.get("status"));
            errors = field_errors("status", check(node, "", status, old));
        }
        list_type::check_changed(&self.root, new, old, &mut errors);
        self.check_rules(new, old, errors)
    }

    /// Returns only the errors of [`Self::check_status`].
    pub fn validate_status(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.check_status(new, old).errors
    }

    /// Checks the CEL rules of an object, unless `errors` has a mistake that prevents it.
    fn check_rules(
        &self,
        new: &Value,
        old: Option<&Value>,
        mut errors: Vec<FieldError>,
    ) -> Findings {
        let mut warnings = Vec::new();
        if let Some(rules) = &self.rules {
            if errors.iter().any(FieldError::blocks_rules) {
                let detail = "some validation rules were not checked because the object was \
                              invalid; correct the existing errors to complete validation";
                errors.push(FieldError::invalid(NO_PATH, &Value::Null, detail));
            } else {
                let found = rules::check(rules, &self.root, new, old, "");
                errors.extend(found.errors);
                warnings = found.warnings;
            }
        }
        errors.truncate(MAX_ERRORS);
        Findings { errors, warnings }
    }
}

/// Checks `value` at `path`; accepts an invalid value that equals `old`.
pub(crate) fn check(node: &Node, path: &str, value: &Value, old: Option<&Value>) -> Outcome {
    let mut outcome = check_strictly(node, path, value, old);
    if let Some(old) = old
        && !outcome.is_valid()
        && is_unchanged(node, value, old)
    {
        outcome.faults.clear();
    }
    outcome
}

fn check_strictly(node: &Node, path: &str, value: &Value, old: Option<&Value>) -> Outcome {
    let mut outcome = Outcome::default();
    if value.is_null() {
        outcome.merge(check_type(node, path, value));
        outcome.merge(check_allowed(node, path, value));
        return outcome;
    }
    let mut run = |part: Outcome| {
        outcome.merge(part);
        outcome.held += 1;
    };
    if !node.type_words().is_empty() || node.limits.format.is_some() {
        run(check_type(node, path, value));
    }
    run(combine::check(node, path, value));
    match value {
        Value::String(text) => {
            run(check_string(node, path, text));
            if let Some(format) = node.limits.format {
                run(match format.accepts(text) {
                    true => Outcome::default(),
                    false => {
                        let fault = Fault::type_invalid(path, text, &node.limits.format_name);
                        Outcome::failed(fault)
                    }
                });
            }
        }
        Value::Number(number) => run(number::check(node, path, number)),
        Value::Array(items) => run(check_list(node, path, items, old)),
        _ => {}
    }
    run(check_allowed(node, path, value));
    if let Value::Object(map) = value {
        run(check_object(node, path, map, old));
    }
    outcome.held += 1;
    outcome
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_type(node: &Node, path: &str, value: &Value) -> Outcome {
    let held = Outcome { faults: Vec::new(), held: 1 };
    let words = node.type_words();
    let found = type_of(value);
    if value.is_null() {
        let wrong = !words.is_empty() && !node.nullable;
        return match wrong {
            true => Outcome::failed(Fault::type_invalid(path, found, words)),
            false => held,
        };
    }
    let is_text = matches!(value, Value::String(_) | Value::Array(_));
    let integral = found == "number"
        && node.accepts("integer")
        && value.as_f64().is_some_and(number::is_json_integer);
    let widened = found == "integer" && node.accepts("number");
    let fits = node.accepts(found) || integral || widened;
    if node.limits.format.is_some() {
        if !is_text && !fits {
            return Outcome::failed(Fault::type_invalid(path, "", &node.limits.format_name));
        }
        if is_text && !node.accepts("number") && !node.accepts("integer") {
            return held;
        }
    }
    match fits {
        true => held,
        false => Outcome::failed(Fault::type_invalid(path, found, words)),
    }
}

fn check_string(node: &Node, path: &str, text: &str) -> Outcome {
    let limits = &node.limits;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(max) = limits.max_length.filter(|max| length > *max) {
        let words = format!("should be at most {max} chars long");
        let limit = usize::try_from(max).unwrap_or_default();
        return Outcome::failed(Fault::at(path, &words, |_| FieldError::too_long("", limit)));
    }
    if let Some(min) = limits.min_length.filter(|min| length < *min) {
        let words = format!("should be at least {min} chars long");
        return Outcome::failed(Fault::invalid(path, &Value::from(text), &words));
    }
    match limits.pattern.as_ref().and_then(|pattern| pattern.refusal(text)) {
        Some(words) => Outcome::failed(Fault::invalid(path, &Value::from(text), &words)),
        None => Outcome::default(),
    }
}

fn check_allowed(node: &Node, path: &str, value: &Value) -> Outcome {
    let allowed = &node.allowed;
    // Go compares after converting the value to the type of the allowed value.
    let same = |one: &Value| match (one, value) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(one), Value::Number(value)) => number::same_converted(one, value),
        _ => one == value,
    };
    if allowed.is_empty() || allowed.iter().any(same) {
        return Outcome::default();
    }
    // A set that is too long for a message is cut.
    let mut left = MAX_SHOWN_BYTES;
    let shown: Vec<&Value> = allowed
        .iter()
        .take_while(|one| {
            left = left.saturating_sub(one.as_str().map_or(1, str::len) + 1);
            left > 0
        })
        .collect();
    let mut plain: Vec<String> = shown.iter().map(|one| go_text::listed_value(one)).collect();
    let mut listed = parse::value_words(shown.iter().copied());
    if shown.len() < allowed.len() {
        plain.push("…".to_owned());
        listed.push("…".to_owned());
    }
    let words = format!("should be one of [{}]", plain.join(" "));
    let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
    Outcome::failed(Fault::at(path, &words, |_| FieldError::not_supported("", value, &listed)))
}

fn check_list(node: &Node, path: &str, items: &[Value], old: Option<&Value>) -> Outcome {
    let mut outcome = Outcome::default();
    if let Some(below) = node.items() {
        let olds = OldItems::of(node, old);
        for (index, item) in items.iter().enumerate() {
            if outcome.is_full() {
                break;
            }
            let old = olds.as_ref().and_then(|olds| olds.get(item));
            outcome.merge(check(below, &format!("{path}[{index}]"), item, old));
        }
    }
    let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if let Some(min) = node.limits.min_items.filter(|min| size < *min) {
        let words = format!("should have at least {min} items");
        outcome.add(Fault::invalid(path, &Value::from(size), &words));
    }
    if let Some(max) = node.limits.max_items.filter(|max| size > *max) {
        let words = format!("should have at most {max} items");
        let error = |_: &str| FieldError::too_many("", items.len(), max);
        outcome.add(Fault::at(path, &words, error));
    }
    if node.limits.unique_items {
        let mut seen = HashSet::with_capacity(items.len());
        if !items.iter().all(|item| seen.insert(item)) {
            outcome.add(Fault::invalid(path, &Value::from(""), "shouldn't contain duplicates"));
        }
    }
    outcome.held += 1;
    outcome
}

fn check_object(node: &Node, path: &str, map: &Map<String, Value>, old: Option<&Value>) -> Outcome {
    let mut outcome = Outcome::default();
    check_size(node, path, map, &mut outcome);
    let old_of = |name: &str| {
        // A change of apiVersion is ignored: both objects have the requested version.
        let is_type = path.is_empty() && matches!(name, "kind" | "apiVersion");
        if is_type { None } else { old_field(node, name, old) }
    };
    match &node.additional {
        Some(Additional::Any(false)) => {
            for name in map.keys().filter(|name| !node.properties.contains_key(*name)) {
                let message = format!("{path}.{name} in body is a forbidden property");
                outcome.add(Fault::invalid_saying(path, &Value::from(name.as_str()), message));
            }
        }
        Some(Additional::Of(below)) => {
            for (name, value) in map {
                if !node.properties.contains_key(name) && !outcome.is_full() {
                    outcome.merge(check(below, &format!("{path}.{name}"), value, old_of(name)));
                }
            }
        }
        Some(Additional::Any(true)) | None => {}
    }
    for (name, below) in &node.properties {
        if let Some(value) = map.get(name) {
            let place = match path.is_empty() {
                true => name.clone(),
                false => format!("{path}.{name}"),
            };
            outcome.merge(check(below, &place, value, old_of(name)));
        }
    }
    for name in node.required.iter().filter(|name| !map.contains_key(*name)) {
        let place = format!("{path}.{name}");
        outcome.add(Fault::at(&place, "is required", |_| FieldError::required("", "")));
    }
    outcome
}

fn check_size(node: &Node, path: &str, map: &Map<String, Value>, outcome: &mut Outcome) {
    let size = i64::try_from(map.len()).unwrap_or(i64::MAX);
    if let Some(min) = node.limits.min_properties.filter(|min| size < *min) {
        let words = format!("should have at least {min} properties");
        outcome.add(Fault::invalid(path, &Value::from(size), &words));
    }
    if let Some(max) = node.limits.max_properties.filter(|max| size > *max) {
        let words = format!("should have at most {max} properties");
        let error = |_: &str| FieldError::too_many("", map.len(), max);
        outcome.add(Fault::at(path, &words, error));
    }
}
