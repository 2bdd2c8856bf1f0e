//! Conversion of values to and from JSON text (Go `encoding/json`).

use crate::value::{Heap, Value, deep, may_make};

/// Error message for a number that JSON cannot represent.
pub const UNSUPPORTED: &str = "json: unsupported value";

/// Style of JSON output.
#[derive(Clone, Copy)]
pub struct Style {
    /// True to escape `<`, `>` and `&`, so that the text is safe within HTML.
    pub html: bool,
    /// True to indent by two spaces per level.
    pub pretty: bool,
}

/// Encodes a value as JSON.
///
/// # Errors
/// The value has a number that JSON cannot represent, or exceeds a limit.
pub fn write(heap: &Heap, value: &Value, style: Style) -> Result<String, String> {
    let mut writer = Writer { heap, style, out: String::new() };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer<'h> {
    heap: &'h Heap,
    style: Style,
    out: String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        deep(depth)?;
        self.heap.step(1)?;
        may_make(self.out.len())?;
        match value {
            Value::Nil | Value::Hollow => self.out.push_str("null"),
            Value::Bool(is) => self.out.push_str(if *is { "true" } else { "false" }),
            Value::Int(number) | Value::Int64(number) => self.out.push_str(&number.to_string()),
            Value::Byte(byte) => self.out.push_str(&byte.to_string()),
            Value::Word(number) => self.out.push_str(&number.to_string()),
            Value::Version(it) => self.text(&it.version.to_string()),
            Value::Float(number) if number.is_finite() => {
                self.out.push_str(&go_text::json_float(*number));
            }
            Value::Float(_) => return Err(UNSUPPORTED.to_owned()),
            Value::Text(text) => self.text(text),
            Value::List(list) if list.nil => self.out.push_str("null"),
            Value::Map(map) if map.nil => self.out.push_str("null"),
            Value::List(list) => {
                self.out.push('[');
                for at in 0..list.len() {
                    self.element(at, depth);
                    self.value(&list.get(at).unwrap_or(Value::Nil), depth + 1)?;
                }
                self.close(list.len(), depth, ']');
            }
            Value::Map(map) => {
                self.out.push('{');
                let pairs = map.pairs();
                for (at, (key, value)) in pairs.iter().enumerate() {
                    self.element(at, depth);
                    self.text(key);
                    self.out.push_str(if self.style.pretty { ": " } else { ":" });
                    self.value(value, depth + 1)?;
                }
                self.close(pairs.len(), depth, '}');
            }
        }
        Ok(())
    }

    fn element(&mut self, at: usize, depth: usize) {
        if at > 0 {
            self.out.push(',');
        }
        self.line(depth + 1);
    }

    fn close(&mut self, count: usize, depth: usize, bracket: char) {
        if count > 0 {
            self.line(depth);
        }
        self.out.push(bracket);
    }

    fn line(&mut self, depth: usize) {
        if self.style.pretty {
            self.out.push('\n');
            self.out.push_str(&"  ".repeat(depth));
        }
    }

    fn text(&mut self, text: &str) {
        go_text::push_json_string(&mut self.out, text, self.style.html);
    }
}

/// Parses a JSON text.
///
/// # Errors
/// The text is not valid JSON. The message has the position, not the content.
pub fn read(heap: &Heap, text: &str) -> Result<Value, String> {
    let json: serde_json::Value = serde_json::from_str(text)
        .map_err(|error| format!("not JSON: line {} column {}", error.line(), error.column()))?;
    heap.json(&json, 0)
}
