//! Formatting of values in errors, as in Kubernetes' package `util/validation/field`.

use serde_json::Value;

use crate::fmt::{number, quoted};
use crate::json::json;

/// Formats the value of a `field.Error` for its message.
pub fn field_value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(one) => number(one),
        other => json(other),
    }
}

/// Formats a value in a list of values, as in `[a b]`.
pub fn listed_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => field_value(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::field_value;

    #[test]
    fn numbers_and_composites_are_printed_as_go_prints_them() {
        for (value, text) in [
            (json!(7), "7"),
            (json!(1.5), "1.5"),
            (json!(1e21), "1e+21"),
            (json!(1.5e-7), "1.5e-07"),
            (json!(true), "true"),
            (json!(null), "null"),
            (json!({"b": "<x>", "a": [1, 2.0, 1e-7]}), r#"{"a":[1,2,1e-7],"b":"\u003cx\u003e"}"#),
        ] {
            assert_eq!(field_value(&value), text);
        }
    }
}
