//! Values as Go's standard library prints them: programs written in it look for these very words.

use std::fmt::Write as _;

use serde_json::Value;

/// Above this power of ten Go prints a float with an exponent.
const LARGE_EXPONENT: i32 = 21;

/// `fmt`'s `%q`: a string literal.
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

/// Close to `unicode.IsPrint`: no controls, no space but the ASCII one, no private use.
pub fn is_printable(c: char) -> bool {
    let code = u32::from(c);
    let unprinted = c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(code, 0xad | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f)
        || matches!(code, 0xe000..=0xf8ff | 0xfeff | 0xfff9..=0xfffb | 0xf0000..);
    !unprinted
}

/// `fmt`'s `%v` of a float64: the shortest form, with an exponent below 1e-4 and from 1e21 on.
pub fn float(number: f64) -> String {
    let (mantissa, exponent) = scientific(number);
    if (-4..LARGE_EXPONENT).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A float64 as `encoding/json` writes it: an exponent below 1e-6 and from 1e21 on, without its
/// leading zero.
pub fn json_float(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return number.to_string();
    }
    let (mantissa, exponent) = scientific(number);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{}", exponent.abs())
}

fn scientific(number: f64) -> (String, i32) {
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse().unwrap_or_default()),
        None => (text, 0),
    }
}

/// What `encoding/json` calls a value.
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::{float, json_float, quoted};

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
}
