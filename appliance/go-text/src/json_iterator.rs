//! JSON text as the package `json-iterator/go` writes it, which structured-merge-diff uses for
//! field paths. The package formats control characters and floats differently from `encoding/json`.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Appends a text as a JSON string. If `html` is true, escapes `<`, `>`, `&`, U+2028 and U+2029.
pub fn push_json_text(out: &mut String, text: &str, html: bool) {
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

/// Appends a value as JSON in Go's form: sorted keys, HTML characters escaped.
pub fn push_json(out: &mut String, value: &Value) {
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

/// Appends a number. Floats without a fraction are written as integers: 80.0 and 80 are one path
/// element.
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

    use super::push_json;

    #[test]
    fn json_is_written_as_in_go() {
        let mut out = String::new();
        push_json(&mut out, &json!({"b": "<&>", "a": [80.0, 1.5, -2, true, null, "\u{8}"]}));
        assert_eq!(out, r#"{"a":[80,1.5,-2,true,null,"\u0008"],"b":"\u003c\u0026\u003e"}"#);
    }
}
