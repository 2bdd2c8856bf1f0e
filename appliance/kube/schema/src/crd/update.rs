//! Checks of an update of a definition.

use serde_json::Value;

use super::check::{approval, check_approval, check_spec, check_stored_versions};
use crate::field_error::FieldError;

/// Checks an updated definition against the stored one.
///
/// Accepts a mistake that the stored definition has too: the definition may be older than the rule,
/// and must stay changeable.
pub fn check_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_spec(new, &mut errors);
    if !errors.is_empty() {
        let mut before = Vec::new();
        check_spec(old, &mut before);
        errors.retain(|error| !before.contains(error));
    }
    let mut fixed = vec!["group", "names/plural"];
    if is_established(old) {
        fixed.extend(["scope", "names/kind"]);
    }
    for field in fixed {
        let pointer = format!("/spec/{field}");
        let value = new.pointer(&pointer).cloned().unwrap_or_default();
        if Some(&value) != old.pointer(&pointer) {
            let place = format!("spec.{}", field.replace('/', "."));
            errors.push(FieldError::invalid(place, &value, "field is immutable"));
        }
    }
    check_stored_versions(new, &mut errors);
    if approval(new) != approval(old) {
        check_approval(new, &mut errors);
    }
    errors
}

fn is_established(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_wrong_before_may_stay_and_nothing_else() {
        let definition = |rule: &str, plural: &str| {
            json!({
                "metadata": {"name": "things.example.com"},
                "spec": {
                    "group": "example.com", "scope": "Namespaced",
                    "names": {"plural": plural, "singular": "thing", "kind": "Thing",
                        "listKind": "ThingList"},
                    "conversion": {"strategy": "None"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                        "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                            "type": "object", "properties": {"a": {"type": "integer"}},
                            "x-kubernetes-validations": [{"rule": rule}]}}}}}]
                },
                "status": {"storedVersions": ["v1"]},
            })
        };
        let old = definition("self.a > 0 &&", "things");
        let mut new = old.clone();
        new["spec"]["names"]["shortNames"] = json!(["th"]);
        assert_eq!(check_update(&new, &old), []);
        assert_eq!(check_update(&definition("self.a > 0", "things"), &old), []);
        let worse = check_update(&definition("self.b > 0", "things"), &old);
        assert!(worse.iter().any(|error| error.detail.contains("undefined field")), "{worse:?}");
        let renamed = check_update(&definition("self.a > 0 &&", "others"), &old);
        assert!(renamed.iter().any(|error| error.detail == "field is immutable"), "{renamed:?}");
    }
}
