//! Schema with the fields of several schemas, so that objects of all versions of a kind can be
//! stored without loss.

use serde_json::{Map, Value, json};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// Keywords that define fields and their merging. Each version keeps its own validations.
const KEPT: [&str; 13] = [
    "type",
    "properties",
    "additionalProperties",
    "items",
    "default",
    "nullable",
    "format",
    PRESERVE,
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

/// Returns a schema without validations that has every field of `first` and of `others`. Defaults
/// and list types are taken from `first`. A field with several types may contain any value.
pub fn superset<'a>(first: &Value, others: impl IntoIterator<Item = &'a Value>) -> Value {
    let mut wide = bare(first, true);
    for other in others {
        widen(&mut wide, &bare(other, false));
    }
    wide
}

/// Returns a schema without its validations. The schema's depth limits the recursion.
fn bare(schema: &Value, defaults: bool) -> Value {
    let Some(words) = schema.as_object() else { return schema.clone() };
    let mut bared = Map::new();
    for (word, value) in words {
        let value = match word.as_str() {
            "default" if !defaults => continue,
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                fields.map(|(name, below)| (name.clone(), bare(below, defaults))).collect()
            }
            "items" | "additionalProperties" => bare(value, defaults),
            word if KEPT.contains(&word) => value.clone(),
            _ => continue,
        };
        bared.insert(word.clone(), value);
    }
    Value::Object(bared)
}

/// Adds the fields of `other` to `wide`.
fn widen(wide: &mut Value, other: &Value) {
    let kind = |schema: &Value| schema["type"].as_str().unwrap_or_default().to_owned();
    let (ours, theirs) = (kind(wide), kind(other));
    if ours != theirs && !ours.is_empty() && !theirs.is_empty() {
        *wide = json!({ PRESERVE: true });
        return;
    }
    let Some(words) = wide.as_object_mut() else { return };
    let is_open = |schema: &Map<String, Value>| schema.get(PRESERVE) == Some(&Value::Bool(true));
    let Some(other) = other.as_object() else { return };
    let any =
        |schema: &Map<String, Value>| schema.get("additionalProperties") == Some(&json!(true));
    if is_open(other) || any(other) {
        words.insert(PRESERVE.to_owned(), Value::Bool(true));
    }
    let additional = words.get("additionalProperties").filter(|one| one.is_object()).cloned();
    if let Some(theirs) = other.get("properties").and_then(Value::as_object) {
        let ours = words.entry("properties").or_insert_with(|| json!({}));
        for (name, below) in theirs {
            match (ours.get_mut(name), &additional) {
                (Some(ours), _) => widen(ours, below),
                (None, Some(additional)) => {
                    let mut both = additional.clone();
                    widen(&mut both, below);
                    ours[name] = both;
                }
                (None, None) => ours[name] = below.clone(),
            }
        }
    }
    for word in ["items", "additionalProperties"] {
        match (words.get_mut(word), other.get(word)) {
            (Some(ours), Some(theirs)) if ours.is_object() => widen(ours, theirs),
            (None, Some(theirs)) if theirs.is_object() => {
                words.insert(word.to_owned(), theirs.clone());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::superset;

    #[test]
    fn every_field_of_every_version_is_known() {
        let text = json!({ "type": "string", "maxLength": 3, "default": "x" });
        let first = json!({ "type": "object", "required": ["a"], "properties": {
            "a": text,
            "list": { "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": { "type": "object", "properties": { "k": text } } },
            "both": { "type": "object" },
        } });
        let other = json!({ "type": "object", "properties": {
            "a": { "type": "integer" },
            "b": text,
            "list": { "type": "array",
                "items": { "type": "object", "properties": { "l": text } } },
            "both": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        } });
        let given = json!({ "type": "string", "default": "x" });
        let plain = json!({ "type": "string" });
        let wide = json!({ "type": "object", "properties": {
            "a": { "x-kubernetes-preserve-unknown-fields": true },
            "b": plain,
            "list": { "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": { "type": "object", "properties": { "k": given, "l": plain } } },
            "both": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        } });
        assert_eq!(superset(&first, [&other]), wide);
    }
}
