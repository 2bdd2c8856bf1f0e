//! Writer of YAML: keys in natural order, lists without indentation, quotes only where a plain
//! scalar would have another meaning.

mod plain;

use serde_json::Value;

use crate::read::MAX_DEPTH;
use plain::{Allowed, allowed, natural_order, resolves_to_text};

/// Column limit: a long text is folded at the first space beyond this column.
const WIDTH: usize = 80;
/// Maximum bytes of a key in the form `key:`; a longer key is written with `?`.
const KEY_BYTES_MAX: usize = 128;

/// Returns the YAML text of a value, with a newline at the end.
///
/// # Errors
/// Returns an error if the value is nested more than [`MAX_DEPTH`] deep, or if a key has a line
/// break other than a newline.
pub fn write(value: &Value) -> Result<String, &'static str> {
    let mut writer = Writer { out: String::new() };
    writer.value(value, 0, Place::Root, 0)?;
    if !writer.out.ends_with('\n') {
        writer.out.push('\n');
    }
    Ok(writer.out)
}

/// YAML style of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
}

/// Position of a value, which determines its indentation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// Value after a key and its colon.
    Field,
    /// Value after the dash of a list item.
    Item,
}

struct Writer {
    out: String,
}

impl Writer {
    /// Writes a value; the lines of a map or list are indented by `indent`.
    fn value(
        &mut self,
        value: &Value,
        indent: usize,
        place: Place,
        depth: usize,
    ) -> Result<(), &'static str> {
        if depth > MAX_DEPTH {
            return Err("a value is nested too deeply");
        }
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let mut pairs: Vec<_> = fields.iter().collect();
                pairs.sort_by(|a, b| natural_order(a.0, b.0));
                for (at, (key, value)) in pairs.into_iter().enumerate() {
                    self.begin(indent, place, at);
                    if key.len() > KEY_BYTES_MAX || key.contains('\n') {
                        self.long_key(key, indent)?;
                        self.value(value, indent + 2, Place::Item, depth + 1)?;
                        continue;
                    }
                    self.key(key)?;
                    self.out.push(':');
                    // A list is indented as much as its key.
                    let inner = if value.is_array() { indent } else { indent + 2 };
                    self.value(value, inner, Place::Field, depth + 1)?;
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (at, item) in items.iter().enumerate() {
                    self.begin(indent, place, at);
                    self.out.push('-');
                    self.value(item, indent + 2, Place::Item, depth + 1)?;
                }
            }
            scalar => {
                if place != Place::Root {
                    self.out.push(' ');
                }
                // Continuation lines of a scalar at the root are indented by two, because the root
                // has no indentation.
                let indent = if place == Place::Root { indent + 2 } else { indent };
                self.scalar(scalar, indent);
                if !self.out.ends_with('\n') {
                    self.out.push('\n');
                }
            }
        }
        Ok(())
    }

    /// Begins the line of the element `at`; an item's first element follows its dash.
    fn begin(&mut self, indent: usize, place: Place, at: usize) {
        match (place, at) {
            (Place::Item, 0) => self.out.push(' '),
            (Place::Field, 0) => {
                self.out.push('\n');
                self.out.push_str(&" ".repeat(indent));
            }
            _ => self.out.push_str(&" ".repeat(indent)),
        }
    }

    /// Writes a key longer than [`KEY_BYTES_MAX`] after `? `, and the colon on a new line.
    fn long_key(&mut self, key: &str, indent: usize) -> Result<(), &'static str> {
        no_other_breaks(key)?;
        self.out.push_str("? ");
        self.text(key, indent + 2);
        if !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.out.push_str(&" ".repeat(indent));
        self.out.push(':');
        Ok(())
    }

    fn key(&mut self, key: &str) -> Result<(), &'static str> {
        no_other_breaks(key)?;
        match allowed(key) {
            Allowed { plain: true, .. } if !key.is_empty() && resolves_to_text(key) => {
                self.out.push_str(key);
            }
            Allowed { single: true, .. } if resolves_to_text(key) => self.single(key, None),
            _ => self.double(key, None),
        }
        Ok(())
    }

    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(is) => self.out.push_str(if *is { "true" } else { "false" }),
            Value::Number(number) => self.number(number),
            Value::Array(_) => self.out.push_str("[]"),
            Value::Object(_) => self.out.push_str("{}"),
            Value::String(text) => self.text(text, indent),
        }
    }

    fn number(&mut self, number: &serde_json::Number) {
        match number.as_f64() {
            Some(float) if number.is_f64() => self.out.push_str(&plain::float(float)),
            _ => self.out.push_str(&number.to_string()),
        }
    }

    fn text(&mut self, text: &str, indent: usize) {
        let (allowed, fold) = (allowed(text), Some(indent));
        if text.contains('\n') {
            if allowed.literal {
                self.literal(text, indent)
            } else {
                self.double(text, fold)
            }
            return;
        }
        match resolves_to_text(text) {
            true if allowed.plain => self.folded(text, fold, |_| None, Style::Plain),
            true if allowed.single => self.single(text, fold),
            _ => self.double(text, fold),
        }
    }

    fn single(&mut self, text: &str, fold: Option<usize>) {
        self.out.push('\'');
        self.folded(text, fold, |c| (c == '\'').then(|| "''".to_owned()), Style::Single);
        self.out.push('\'');
    }

    fn double(&mut self, text: &str, fold: Option<usize>) {
        self.out.push('"');
        self.folded(text, fold, plain::escaped, Style::Double);
        self.out.push('"');
    }

    /// Writes a text folded at spaces beyond [`WIDTH`]; continuation lines are indented by `fold`,
    /// and `None` disables folding.
    fn folded(
        &mut self,
        text: &str,
        fold: Option<usize>,
        escape: impl Fn(char) -> Option<String>,
        style: Style,
    ) {
        let line = self.out.rfind('\n').map_or(0, |at| at + 1);
        let mut column = self.out[line..].chars().count();
        let mut after_space = false;
        for (at, c) in text.char_indices() {
            let next_is_space = text[at + c.len_utf8()..].starts_with(' ');
            let is_end = style != Style::Plain && (at == 0 || at + 1 == text.len());
            let may_end = c == ' ' && !after_space && column > WIDTH && !is_end;
            after_space = c == ' ';
            if let (true, Some(indent)) = (may_end, fold)
                && (style == Style::Double || !next_is_space)
            {
                self.out.push('\n');
                self.out.push_str(&" ".repeat(indent));
                column = indent;
                if style == Style::Double && next_is_space {
                    self.out.push('\\');
                    column += 1;
                }
                continue;
            }
            let written = escape(c).unwrap_or_else(|| c.to_string());
            column += written.chars().count();
            self.out.push_str(&written);
        }
    }

    /// Writes a literal block: `|`, indicators for indentation and final newlines, the lines.
    fn literal(&mut self, text: &str, indent: usize) {
        self.out.push('|');
        if text.starts_with([' ', '\n']) {
            self.out.push('2');
        }
        if !text.ends_with('\n') {
            self.out.push('-');
        } else if text == "\n" || text.ends_with("\n\n") {
            self.out.push('+');
        }
        self.out.push('\n');
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.out.push('\n');
            }
            if !line.is_empty() {
                self.out.push_str(&" ".repeat(indent));
                self.out.push_str(line);
            }
        }
    }
}

/// Checks that a key has no U+2028 or U+2029, which are line breaks in YAML 1.1.
fn no_other_breaks(key: &str) -> Result<(), &'static str> {
    match key.contains(['\u{2028}', '\u{2029}']) {
        true => Err("a key has a line break that is not a newline"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::write;

    /// Expected text was written by `sigs.k8s.io/yaml` v1.6.
    #[test]
    fn values_are_written_as_kubernetes_programs_do() {
        let value = json!({
            "b": [1, {"x": 1, "y": [2, 3]}, [4, [5]]], "a10": "yes", "a9": "", "c": {},
            "d": [], "e": "l1\nl2\n", "f": "0600", "g": "a: b", "h": "# no", "i": null,
            "k": 1.5, "l": "it's", "m": " lead",
        });
        let expected = "a9: \"\"\na10: \"yes\"\nb:\n- 1\n- x: 1\n  \"y\":\n  - 2\n  - 3\n- - 4\n  \
                        - - 5\nc: {}\nd: []\ne: |\n  l1\n  l2\nf: \"0600\"\ng: 'a: b'\nh: '# no'\n\
                        i: null\nk: 1.5\nl: it's\nm: ' lead'\n";
        assert_eq!(write(&value).unwrap(), expected);
    }

    #[test]
    fn a_key_that_does_not_fit_has_lines_of_its_own() {
        let long = "k".repeat(129);
        let value = json!({ "a": [{ "l1\nl2": { "x": 1, "y": [2] } }], "b\n": [3, 4], long: "v" });
        let expected = "a:\n- ? |-\n    l1\n    l2\n  : x: 1\n    \"y\":\n    - 2\n\
                        ? |\n  b\n: - 3\n  - 4\n? LONG\n: v\n";
        let expected = expected.replace("LONG", &"k".repeat(129));
        assert_eq!(write(&value).unwrap(), expected);
    }
}
