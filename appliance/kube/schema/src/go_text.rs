//! Values as Go prints them, because upstream's messages are made by `fmt` and `encoding/json`.

use std::fmt::Write as _;

use serde_json::Value;
use stdx::go::{float, json_float, quoted};

/// The value inside a `field.Error`'s text.
pub(crate) fn field_value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.to_string(),
            None => float(number.as_f64().unwrap_or_default()),
        },
        other => json(other),
    }
}

/// `%v` of a decoded JSON value inside a list, as in `[a b]`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => field_value(other),
    }
}

/// `encoding/json`'s form: sorted keys, HTML characters escaped, floats in Go's manner.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => out.push_str(&integer.to_string()),
            None => out.push_str(&json_float(number.as_f64().unwrap_or_default())),
        },
        Value::String(text) => write_json_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_string(out, key);
                out.push(':');
                write_json(out, item);
            }
            out.push('}');
        }
    }
}

fn write_json_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0}'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
