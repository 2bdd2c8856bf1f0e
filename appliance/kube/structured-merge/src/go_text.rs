//! Values as Go prints them: messages and field paths must read as a Kubernetes API server's, and
//! clients look for some of them.

use std::fmt::Write as _;

use serde_json::{Number, Value};
use stdx::go::{float, quoted};

/// A number as `%v` prints it.
pub(crate) fn number(number: &Number) -> String {
    match number.as_f64().filter(|_| !number.is_i64()) {
        Some(number) => float(number),
        None => number.to_string(),
    }
}

/// `%v` of an unstructured value.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(one) => number(one),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let fields: Vec<_> =
                map.iter().map(|(key, value)| format!("{key}:{}", plain(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// `%#v` of an unstructured value.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(one) => number(one),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(literal).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<_> = map
                .iter()
                .map(|(key, value)| format!("{}:{}", quoted(key), literal(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
    }
}

/// `%T` of an unstructured value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(one) if one.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Writes a text as a JSON string; `html` escapes what Go's encoder escapes in values.
pub(crate) fn push_json_text(out: &mut String, text: &str, html: bool) {
    out.push('"');
    for letter in text.chars() {
        let code = u32::from(letter);
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if html => {
                let _ = write!(out, "\\u{code:04x}");
            }
            _ if code < 0x20 => {
                let _ = write!(out, "\\u{code:04x}");
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
}

/// Writes a value as JSON the way Go does: sorted keys, HTML characters escaped.
pub(crate) fn push_json(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => push_json_text(out, text, true),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_json(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (at, (key, item)) in map.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_json_text(out, key, true);
                out.push(':');
                push_json(out, item);
            }
            out.push('}');
        }
        Value::Number(one) => push_json_number(out, one),
        other => out.push_str(&other.to_string()),
    }
}

/// Floats without a fraction are written as integers: 80.0 and 80 are one path element.
fn push_json_number(out: &mut String, number: &Number) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float.fract() == 0.0 && float.abs() < 1e21 => {
            out.push_str(&float.to_string());
        }
        _ => out.push_str(&number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{literal, plain, push_json};

    #[test]
    fn values_read_as_in_go() {
        assert_eq!(plain(&json!({"b": [1, "x"], "a": null})), "map[a:<nil> b:[1 x]]");
        assert_eq!(plain(&json!([1.0, 1.5, 1e21, 0.00001, true])), "[1 1.5 1e+21 1e-05 true]");
        assert_eq!(
            literal(&json!({"a": ["x", 2, null]})),
            r#"map[string]interface {}{"a":[]interface {}{"x", 2, interface {}(nil)}}"#
        );
    }

    #[test]
    fn json_is_written_as_in_go() {
        let mut out = String::new();
        push_json(&mut out, &json!({"b": "<&>", "a": [80.0, 1.5, -2, true, null, "\u{8}"]}));
        assert_eq!(out, r#"{"a":[80,1.5,-2,true,null,"\u0008"],"b":"\u003c\u0026\u003e"}"#);
    }
}
