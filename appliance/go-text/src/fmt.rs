//! Formatting as in Go's package `fmt`: the verbs `%q`, `%v`, `%#v` and `%T`.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Power of ten from which Go prints a float with an exponent.
const LARGE_EXPONENT: i32 = 21;

/// Formats a string literal like the verb `%q`.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if is_printable(c) => out.push(c),
            c => escape(&mut out, c),
        }
    }
    out.push('"');
    out
}

fn escape(out: &mut String, c: char) {
    // Writing to a String cannot fail.
    let _ = match u32::from(c) {
        code @ 0..=0x7f => write!(out, "\\x{code:02x}"),
        code @ 0x80..=0xffff => write!(out, "\\u{code:04x}"),
        code => write!(out, "\\U{code:08x}"),
    };
}

/// Approximates Go's `unicode.IsPrint`. Returns false for control characters, spaces other than
/// ASCII's, invisible format characters and private use characters.
pub fn is_printable(c: char) -> bool {
    let code = u32::from(c);
    let unprinted = c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(code, 0xad | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f)
        || matches!(code, 0xe000..=0xf8ff | 0xfeff | 0xfff9..=0xfffb | 0xf0000..);
    !unprinted
}

/// Formats a float64 like `%v`: the shortest form, with an exponent below 1e-4 and from 1e21 on.
pub fn float(number: f64) -> String {
    let (mantissa, exponent) = scientific(number);
    if (-4..LARGE_EXPONENT).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Returns the mantissa and the power of ten of a number.
pub(crate) fn scientific(number: f64) -> (String, i32) {
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse().unwrap_or_default()),
        None => (text, 0),
    }
}

/// Formats a number like `%v`.
pub fn number(number: &Number) -> String {
    match number.as_f64().filter(|_| !number.is_i64()) {
        Some(number) => float(number),
        None => number.to_string(),
    }
}

/// Formats an unstructured value like `%v`.
pub fn plain(value: &Value) -> String {
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

/// Formats an unstructured value like `%#v`.
pub fn literal(value: &Value) -> String {
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

/// Returns the Go type of an unstructured value, like `%T`.
pub fn type_name(value: &Value) -> &'static str {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{float, literal, plain, quoted};
    use crate::json_float;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        for (text, expected) in [
            ("plain", "\"plain\""),
            ("a\"b\\c", "\"a\\\"b\\\\c\""),
            ("tab\tnl\n\u{1}\u{7f}\u{85}é", "\"tab\\tnl\\n\\x01\\x7f\\u0085é\""),
            ("é ü\u{a0}\u{200b}", "\"é ü\\u00a0\\u200b\""),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn floats_have_go_s_exponents() {
        for (number, plain, json) in [
            (1.5, "1.5", "1.5"),
            (80.0, "80", "80"),
            (1e21, "1e+21", "1e+21"),
            (0.00001, "1e-05", "0.00001"),
            (1.5e-7, "1.5e-07", "1.5e-7"),
        ] {
            assert_eq!((float(number).as_str(), json_float(number).as_str()), (plain, json));
        }
    }

    #[test]
    fn values_read_as_in_go() {
        assert_eq!(plain(&json!({"b": [1, "x"], "a": null})), "map[a:<nil> b:[1 x]]");
        assert_eq!(plain(&json!([1.0, 1.5, 1e21, 0.00001, true])), "[1 1.5 1e+21 1e-05 true]");
        assert_eq!(
            literal(&json!({"a": ["x", 2, null]})),
            r#"map[string]interface {}{"a":[]interface {}{"x", 2, interface {}(nil)}}"#
        );
    }
}
