//! Formats values as YAML in block style, so that people can read cloud-init's input.

use serde_json::Value;

/// Returns the YAML text of an object or a list, with its line end. Keys must be plain words.
/// Strings are always quoted, because YAML 1.1 reads `10:20:30:40:50:01` as a number and `no` as
/// false.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0);
    out
}

fn block(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                indent(out, depth);
                out.push_str(key);
                out.push(':');
                if is_block(value) {
                    out.push('\n');
                    block(out, value, depth + 1);
                } else {
                    out.push(' ');
                    block(out, value, 0);
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                indent(out, depth);
                out.push_str("- ");
                if is_block(item) {
                    let mut below = String::new();
                    block(&mut below, item, depth + 1);
                    out.push_str(below.trim_start());
                } else {
                    block(out, item, 0);
                }
            }
        }
        Value::String(text) => {
            scalar(out, text);
            out.push('\n');
        }
        plain => {
            out.push_str(&plain.to_string());
            out.push('\n');
        }
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Appends a string as a YAML scalar. A JSON string is valid YAML, except for characters that YAML
/// 1.1 reads as line ends or does not allow (production `c-printable`); these are escaped.
fn scalar(out: &mut String, text: &str) {
    for character in Value::from(text).to_string().chars() {
        match character {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use serde_json::json;

    #[test]
    fn blocks_nest() {
        let value = json!({
            "a": 1, "b": "x: #", "c": [], "d": {},
            "e": ["one", { "f": true, "g": ["two"] }, [3]],
            "h": { "i": null },
        });
        let wanted = "a: 1\nb: \"x: #\"\nc: []\nd: {}\ne:\n  - \"one\"\n  - f: true\n    g:\n      \
                      - \"two\"\n  - - 3\nh:\n  i: null\n";
        assert_eq!(text(&value), wanted);
    }

    #[test]
    fn no_text_ends_a_line() {
        let value = json!({ "a": "\n\r\t\"\\\u{85}\u{2028}\u{feff}\u{7f}\u{0}\u{e9}\u{1f600}" });
        let wanted = "a: \"\\n\\r\\t\\\"\\\\\\u0085\\u2028\\ufeff\\u007f\\u0000\u{e9}\u{1f600}\"\n";
        assert_eq!(text(&value), wanted);
    }
}
