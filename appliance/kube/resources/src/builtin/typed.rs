//! Type checks before an object is stored, so that controllers can read every stored object as
//! their Rust type. All mistakes are reported together, each with its field.

use std::fmt::Write as _;
use std::sync::Arc;

use api::meta::Object;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value, json};

use crate::definition::Validate;
use schema::FieldError;

type Rule = fn(&Value, Option<&Value>) -> Vec<FieldError>;

/// Maximum type mistakes in one response, even for an array of a million invalid items.
pub(super) const MAX_MISTAKES: usize = 16;
/// Maximum fields or items that are checked one by one. A mistake in a longer value is reported for
/// the whole value.
const MAX_PARTS: usize = 1024;
/// Maximum bytes of a text shown in a mistake. A longer text is shown as its type only.
const MAX_SHOWN: usize = 64;

/// Beginning of serde's message about a missing required field.
const MISSING: &str = "missing field `";

/// Returns a check by `rule` and by type: metadata and spec must be readable as Rust types.
///
/// Mistakes that the stored object already has do not block an update, so that finalizers of an
/// object from before a rule can be removed.
pub(super) fn validated<Spec>(rule: Rule) -> Validate
where
    Spec: Default + Serialize + DeserializeOwned + 'static,
{
    Arc::new(move |object, old| {
        let mut errors = rule(object, old);
        let found = mistakes::<Spec>(object);
        if found.is_empty() {
            return errors;
        }
        let before = old.map(mistakes::<Spec>).unwrap_or_default();
        let told = errors.len();
        for mistake in found {
            let known = errors.iter().take(told).any(|it| mistake.field.starts_with(&it.field));
            if !known && !before.contains(&mistake) {
                errors.push(mistake);
            }
        }
        errors
    })
}

/// Returns the type mistakes in `object`, [`MAX_MISTAKES`] at most.
fn mistakes<Spec>(object: &Value) -> Vec<FieldError>
where
    Spec: Default + Serialize + DeserializeOwned,
{
    let mut found = Vec::new();
    match decode::<Spec>(object) {
        Ok(typed) => {
            if let Ok(typed) = serde_json::to_value(&typed.spec) {
                compare("spec", &object["spec"], &typed, &mut found);
            }
        }
        Err(why) => narrow::<Spec>(&mut Vec::new(), object, &why.to_string(), &mut found),
    }
    found
}

fn decode<Spec>(object: &Value) -> serde_json::Result<Object<Spec, IgnoredAny>>
where
    Spec: Default + DeserializeOwned,
{
    Object::deserialize(object)
}

/// Step of a path into a JSON value: a field name or an item's index.
#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

/// Adds to `found` the smallest parts of `value` that serde cannot read, each tried as the only
/// content of an object. `path` is the path of `value`; `why` is serde's message about it.
fn narrow<'a, Spec>(
    path: &mut Vec<Step<'a>>,
    value: &'a Value,
    why: &str,
    found: &mut Vec<FieldError>,
) where
    Spec: Default + DeserializeOwned,
{
    let missing = |why: &str| why.strip_prefix(MISSING)?.strip_suffix('`').map(str::to_owned);
    let (empty, parts) = parts(value);
    let bare = decode::<Spec>(&alone(path, &empty)).err().map(|error| error.to_string());
    let lacks = bare.as_deref().and_then(missing);
    if let Some(field) = lacks.as_deref().filter(|_| lacks == missing(why)) {
        let field = format!("{}.{field}", text(path));
        found.push(FieldError::required(field, "must be given"));
        return;
    }
    // If even an empty value is refused here, the parts are not the cause.
    let parts = if bare.is_some() && lacks.is_none() { Vec::new() } else { parts };
    let before = found.len();
    for (step, part) in parts {
        if found.len() >= MAX_MISTAKES {
            return;
        }
        path.push(step);
        let wrong = decode::<Spec>(&alone(path, part)).err().map(|error| error.to_string());
        // A part alone lacks its required sibling fields; that error is not the part's mistake.
        if let Some(why) = wrong.filter(|why| lacks.is_none() || lacks != missing(why)) {
            narrow::<Spec>(path, part, &why, found);
        }
        path.pop();
    }
    if found.len() == before {
        found.push(FieldError::invalid(text(path), &shown(value), rule(why)));
    }
}

/// Returns an empty value of `value`'s JSON type, and the fields or items of `value`; no parts if
/// `value` has more than [`MAX_PARTS`].
fn parts(value: &Value) -> (Value, Vec<(Step<'_>, &Value)>) {
    match value {
        Value::Object(map) if map.len() <= MAX_PARTS => {
            (json!({}), map.iter().map(|(key, part)| (Step::Key(key), part)).collect())
        }
        Value::Array(items) if items.len() <= MAX_PARTS => {
            let parts = items.iter().enumerate().map(|(at, part)| (Step::Item(at), part));
            (json!([]), parts.collect())
        }
        _ => (Value::Null, Vec::new()),
    }
}

/// Builds an object that contains only `part` at `path`.
fn alone(path: &[Step<'_>], part: &Value) -> Value {
    path.iter().rev().fold(part.clone(), |inner, step| match step {
        Step::Key(key) => Value::Object(Map::from_iter([((*key).to_owned(), inner)])),
        Step::Item(_) => Value::Array(vec![inner]),
    })
}

/// Adds to `found` each value whose JSON type differs between `given` and its serde form `typed`.
/// Example: serde accepts a list for a struct, which no client intends.
fn compare(path: &str, given: &Value, typed: &Value, found: &mut Vec<FieldError>) {
    match (given, typed) {
        // The field is absent on either side.
        (Value::Null, _) | (_, Value::Null) => {}
        (Value::Object(given), Value::Object(typed)) => {
            for (key, given) in given {
                if let Some(typed) = typed.get(key) {
                    compare(&format!("{path}.{key}"), given, typed, found);
                }
            }
        }
        (Value::Array(given), Value::Array(typed)) => {
            for (at, (given, typed)) in given.iter().zip(typed).enumerate() {
                compare(&format!("{path}[{at}]"), given, typed, found);
            }
        }
        _ if found.len() >= MAX_MISTAKES || type_name(given) == type_name(typed) => {}
        _ => {
            let detail = format!("must be {}", type_name(typed));
            found.push(FieldError::invalid(path, &shown(given), detail));
        }
    }
}

fn text(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        // Writing to a String does not fail.
        let _ = match step {
            Step::Item(at) => write!(text, "[{at}]"),
            Step::Key(key) if text.is_empty() => write!(text, "{key}"),
            Step::Key(key) if key.contains(['.', '[', '/']) => write!(text, "[{key}]"),
            Step::Key(key) => write!(text, ".{key}"),
        };
    }
    text
}

/// Converts the end of serde's message (`expected …`) to a rule: `must be an integer`.
fn rule(why: &str) -> String {
    let Some((_, expected)) = why.rsplit_once(", expected ") else { return why.to_owned() };
    let expected = match expected {
        "i64" => "an integer",
        "u16" => "an integer from 0 to 65535",
        "a sequence" => "an array",
        "a map" => "an object",
        text if text.starts_with("struct ") => "an object",
        text => text,
    };
    format!("must be {expected}")
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns the value for a message; only its type's name if it is a list, an object or a long text.
pub(super) fn shown(value: &Value) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) => type_name(value).into(),
        Value::String(text) if text.len() > MAX_SHOWN => type_name(value).into(),
        short => short.clone(),
    }
}

#[cfg(test)]
mod tests;
