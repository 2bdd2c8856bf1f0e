//! Formatting of values as text (Go `fmt`), for `{{ }}`, `print` and `printf`.

mod float;
mod format;
mod verb;
mod version;

use crate::limits::TEXT_BYTES_MAX;
use crate::value::{Element, Heap, List, Map, Value, deep, may_make};

/// Flags of a verb of `printf`.
#[derive(Default, Clone, Copy)]
struct Flags {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// True for the flag `#` with the verb `v`: Go syntax.
    go_syntax: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

struct Printer<'h> {
    heap: &'h Heap,
    out: String,
    flags: Flags,
}

/// Formats a value as `%v` does.
pub fn plain(heap: &Heap, value: &Value) -> Result<String, String> {
    if let Value::Text(text) = value {
        return Ok(text.to_string());
    }
    let mut printer = Printer::new(heap);
    printer.argument(value, 'v')?;
    Ok(printer.out)
}

/// Formats values as `fmt.Sprint`, with a space between two values that are not strings.
pub fn sprint(heap: &Heap, values: &[Value]) -> Result<String, String> {
    let mut printer = Printer::new(heap);
    let mut after_text = true;
    for value in values {
        let is_text = matches!(value, Value::Text(_));
        if !is_text && !after_text {
            printer.write(" ")?;
        }
        printer.argument(value, 'v')?;
        after_text = is_text;
    }
    Ok(printer.out)
}

/// Formats values as `fmt.Sprintln` does.
pub fn sprintln(heap: &Heap, values: &[Value]) -> Result<String, String> {
    let mut printer = Printer::new(heap);
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            printer.write(" ")?;
        }
        printer.argument(value, 'v')?;
    }
    printer.write("\n")?;
    Ok(printer.out)
}

/// Formats values as `fmt.Sprintf` does.
pub fn sprintf(heap: &Heap, format: &str, values: &[Value]) -> Result<String, String> {
    let mut printer = Printer::new(heap);
    printer.format(format, values)?;
    Ok(printer.out)
}

impl<'h> Printer<'h> {
    fn new(heap: &'h Heap) -> Self {
        Printer { heap, out: String::new(), flags: Flags::default() }
    }

    fn write(&mut self, text: &str) -> Result<(), String> {
        may_make(self.out.len() + text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    /// Writes `text`, padded to the width.
    fn pad(&mut self, text: &str) -> Result<(), String> {
        let Some(width) = self.flags.width else { return self.write(text) };
        let missing = width.saturating_sub(text.chars().count());
        if self.flags.minus {
            self.write(text)?;
            return self.fill(missing);
        }
        self.fill(missing)?;
        self.write(text)
    }

    fn fill(&mut self, count: usize) -> Result<(), String> {
        let fill = if self.flags.zero && !self.flags.minus { "0" } else { " " };
        self.write(&fill.repeat(count.min(TEXT_BYTES_MAX + 1)))
    }

    /// Writes `%!verb(type=value)` for a verb that the value does not support.
    fn bad_verb(&mut self, value: &Value, verb: char) -> Result<(), String> {
        self.write(&format!("%!{verb}("))?;
        if value.is_nil() {
            self.write("<nil>")?;
        } else {
            self.write(&format!("{}=", value.type_name()))?;
            self.value(value, 'v', 0)?;
        }
        self.write(")")
    }

    fn argument(&mut self, value: &Value, verb: char) -> Result<(), String> {
        if value.is_nil() {
            return match verb {
                'T' | 'v' => self.pad("<nil>"),
                _ => self.bad_verb(value, verb),
            };
        }
        match (verb, value) {
            ('T', _) => self.string(value.type_name(), 's', value),
            ('p', Value::List(_) | Value::Map(_) | Value::Version(_)) => {
                Err("%p: an address differs at each call".to_owned())
            }
            _ => self.value(value, verb, 0),
        }
    }

    fn value(&mut self, value: &Value, verb: char, depth: usize) -> Result<(), String> {
        deep(depth)?;
        self.heap.step(1)?;
        match value {
            Value::Nil | Value::Hollow if self.flags.go_syntax => self.write("interface {}(nil)"),
            Value::Nil | Value::Hollow => self.write("<nil>"),
            Value::Bool(is) => match verb {
                't' | 'v' => self.pad(if *is { "true" } else { "false" }),
                _ => self.bad_verb(value, verb),
            },
            Value::Int(number) | Value::Int64(number) => {
                self.integer(number.unsigned_abs(), *number < 0, verb, value)
            }
            Value::Byte(byte) => self.unsigned(u64::from(*byte), verb, value),
            Value::Word(number) => self.unsigned(*number, verb, value),
            Value::Float(number) => self.float(*number, verb, value),
            Value::Text(text) => self.string(text, verb, value),
            Value::List(list) => self.list(list, verb, depth),
            Value::Map(map) => self.map(map, verb, depth),
            Value::Version(it) => self.version(it, verb, value, depth),
        }
    }

    fn unsigned(&mut self, number: u64, verb: char, value: &Value) -> Result<(), String> {
        if verb != 'v' || !self.flags.go_syntax {
            return self.integer(number, false, verb, value);
        }
        let sharp = std::mem::replace(&mut self.flags.sharp, true);
        self.integer(number, false, 'x', value)?;
        self.flags.sharp = sharp;
        Ok(())
    }

    fn list(&mut self, list: &List, verb: char, depth: usize) -> Result<(), String> {
        let (separator, close) = self.opening(list.nil, "[", || Value::List(list.clone()))?;
        let Some(close) = close else { return Ok(()) };
        for at in 0..list.len() {
            if at > 0 {
                self.write(separator)?;
            }
            self.value(&list.get(at).unwrap_or(Value::Nil), verb, depth + 1)?;
        }
        self.write(close)
    }

    fn map(&mut self, map: &Map, verb: char, depth: usize) -> Result<(), String> {
        let (separator, close) = self.opening(map.nil, "map[", || Value::Map(map.clone()))?;
        let Some(close) = close else { return Ok(()) };
        for (at, (key, value)) in map.pairs().into_iter().enumerate() {
            if at > 0 {
                self.write(separator)?;
            }
            self.value(&Value::Text(key), verb, depth + 1)?;
            self.write(":")?;
            if map.element == Element::Text && value.is_nil() {
                continue;
            }
            self.value(&value, verb, depth + 1)?;
        }
        self.write(close)
    }

    /// Writes the beginning of a list or map. Returns separator and end; no end after Go's `(nil)`.
    fn opening(
        &mut self,
        is_nil: bool,
        open: &str,
        value: impl Fn() -> Value,
    ) -> Result<(&'static str, Option<&'static str>), String> {
        if !self.flags.go_syntax {
            self.write(open)?;
            return Ok((" ", Some("]")));
        }
        self.write(value().type_name())?;
        if is_nil {
            self.write("(nil)")?;
            return Ok((", ", None));
        }
        self.write("{")?;
        Ok((", ", Some("}")))
    }
}
