//! Paths of the replica fields of a kind, and the check that the fields are numbers
//! (apiextensions-apiserver `pkg/registry/customresource/validator.go`).

use schema::FieldError;
use serde_json::{Value, json};

/// Dotted paths of the replica fields of a scalable kind, from the object's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// Path of the desired number of replicas, below `.spec`.
    pub spec_replicas: String,
    /// Path of the observed number of replicas, below `.status`.
    pub status_replicas: String,
    /// Path of the label selector (text), below `.status` or `.spec`; `None` without selector.
    pub label_selector: Option<String>,
}

impl Scale {
    /// Returns mistakes in the desired number of replicas.
    pub fn spec_mistakes(&self, object: &Value) -> Vec<FieldError> {
        number(object, &self.spec_replicas)
    }

    /// Returns mistakes in the observed number of replicas and in the selector.
    pub fn status_mistakes(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = number(object, &self.status_replicas);
        if let Some(path) = &self.label_selector
            && let Err(why) = at(object, path, "string", Value::is_string)
        {
            errors.push(FieldError::invalid(path, &json!(""), why));
        }
        errors
    }
}

fn number(object: &Value, path: &str) -> Vec<FieldError> {
    let (value, detail) = match at(object, path, "int64", Value::is_i64) {
        Err(why) => (0, why),
        Ok(found) => match found.and_then(Value::as_i64) {
            Some(count) if count < 0 => (count, "should be a non-negative integer".to_owned()),
            Some(count) if count > i64::from(i32::MAX) => {
                (count, format!("should be less than or equal to {}", i32::MAX))
            }
            _ => return Vec::new(),
        },
    };
    vec![FieldError::invalid(path, &json!(value), detail)]
}

/// Returns the value at `path`; `None` if missing. If the value or a parent has another type,
/// returns upstream's error message (`unstructured.NestedInt64` and similar functions).
fn at<'a>(
    object: &'a Value,
    path: &str,
    wanted: &str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let mut found = object;
    let mut walked = String::new();
    for name in path.trim_start_matches('.').split('.') {
        let Value::Object(fields) = found else {
            return Err(misfit(&walked, found, "map[string]interface {}"));
        };
        let Some(next) = fields.get(name) else { return Ok(None) };
        found = next;
        walked = format!("{walked}.{name}");
    }
    if fits(found) { Ok(Some(found)) } else { Err(misfit(&walked, found, wanted)) }
}

fn misfit(path: &str, found: &Value, wanted: &str) -> String {
    let shown = match found {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if !number.is_i64() => {
            go_text::float(number.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    };
    let kind = match found {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    format!("{path} accessor error: {shown} is of the type {kind}, expected {wanted}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Scale;

    #[test]
    fn replicas_are_numbers() {
        let scale = Scale {
            spec_replicas: ".spec.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            label_selector: Some(".status.selector".to_owned()),
        };
        for (object, expected) in [
            (json!({ "spec": { "replicas": 3 } }), vec![]),
            (json!({}), vec![]),
            (
                json!({ "spec": { "replicas": "many" } }),
                vec![
                    ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: many is of \
                      the type string, expected int64",
                ],
            ),
            (
                json!({ "spec": 1, "status": { "replicas": -1, "selector": true } }),
                vec![
                    ".spec.replicas: Invalid value: 0: .spec accessor error: 1 is of the type \
                     int64, expected map[string]interface {}",
                    ".status.replicas: Invalid value: -1: should be a non-negative integer",
                    ".status.selector: Invalid value: \"\": .status.selector accessor error: true \
                     is of the type bool, expected string",
                ],
            ),
            (
                json!({ "spec": { "replicas": 1_i64 << 31 } }),
                vec![
                    ".spec.replicas: Invalid value: 2147483648: should be less than or equal to \
                      2147483647",
                ],
            ),
        ] {
            let mut found = scale.spec_mistakes(&object);
            found.extend(scale.status_mistakes(&object));
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        }
    }
}
