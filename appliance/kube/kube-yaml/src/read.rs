//! Parser of YAML bodies with Kubernetes' rules. Scalars follow YAML 1.1 (`yes` is true, `010` is
//! eight). Only the first document is read, keys are text, and of duplicate keys the last is used.
//! Source: `sigs.k8s.io/yaml`, whose parser is `go.yaml.in/yaml` v2.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

use crate::scalar;

/// Maximum nesting depth, equal to that of JSON bodies.
pub const MAX_DEPTH: usize = 128;
/// Maximum weight of a body: bytes of text plus 32 for each value, repeated for each use of an
/// alias. Without the limit, a few lines of aliases could use up all memory.
pub const MAX_WEIGHT: usize = 16 * 1024 * 1024;
/// Maximum number of duplicate keys in [`Document::duplicates`].
const MAX_DUPLICATES: usize = 32;
/// Weight of a value in addition to its text, in bytes.
const VALUE_WEIGHT: usize = 32;
/// Maximum length of a key in a message, in bytes; longer keys are cut.
const MAX_SHOWN: usize = 256;

/// Parsed document with messages about duplicate keys.
#[derive(Debug, Default, PartialEq)]
pub struct Document {
    /// Value of the document; of duplicate keys, the last is used.
    pub value: Value,
    /// Messages about duplicate keys: `line 3: key "x" already set in map`.
    pub duplicates: Vec<String>,
}

/// Error with the line of invalid YAML, never with content of the document.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The text is not valid YAML.
    #[error("yaml: line {line}: {why}")]
    Syntax {
        /// Line number, from 1.
        line: usize,
        /// Message of the parser.
        why: String,
    },
    /// A value cannot be expressed in JSON.
    #[error("yaml: line {line}: {what}")]
    Unsupported {
        /// Line number, from 1.
        line: usize,
        /// Description of the unsupported value.
        what: &'static str,
    },
    /// The document exceeds [`MAX_DEPTH`] or [`MAX_WEIGHT`].
    #[error("yaml: document contains excessive aliasing, depth or size")]
    TooMuch,
}

/// Parses the first document of `text`.
///
/// # Errors
/// Returns an error for invalid YAML, an exceeded limit, or a value that JSON cannot express.
pub fn read(text: &str) -> Result<Document, Unreadable> {
    let mut reader = Reader {
        text,
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        duplicates: Vec::new(),
        weight: 0,
    };
    loop {
        let (event, span) = reader.event()?;
        match event {
            Event::StreamEnd | Event::DocumentEnd => {
                return Ok(Document::default());
            }
            Event::StreamStart | Event::DocumentStart(..) => {}
            first => {
                let value = reader.value(first, span, MAX_DEPTH)?;
                // The value is only certain at the end of the document: `a b: c` over two lines is
                // a text up to its colon.
                reader.event()?;
                return Ok(Document { value, duplicates: reader.duplicates });
            }
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    anchors: HashMap<usize, (Value, usize)>,
    duplicates: Vec<String>,
    weight: usize,
}

fn line(span: &Span) -> usize {
    span.start.line()
}

impl<'a> Reader<'a> {
    /// Returns the next parser event other than comments and anchors.
    fn event(&mut self) -> Result<(Event<'a>, Span), Unreadable> {
        loop {
            match self.parser.next() {
                None => return Ok((Event::StreamEnd, Span::default())),
                Some(Ok((Event::Comment(..) | Event::Anchor(..), _))) => {}
                Some(Ok(event)) => return Ok(event),
                Some(Err(error)) => {
                    let line = error.marker().line();
                    return Err(Unreadable::Syntax { line, why: error.info() });
                }
            }
        }
    }

    fn weighs(&mut self, weight: usize) -> Result<(), Unreadable> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > MAX_WEIGHT { Err(Unreadable::TooMuch) } else { Ok(()) }
    }

    fn value(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Value, Unreadable> {
        let inner = depth.checked_sub(1).ok_or(Unreadable::TooMuch)?;
        let before = self.weight;
        self.weighs(VALUE_WEIGHT)?;
        let (value, anchor) = match event {
            Event::Alias(anchor) => {
                let found = self.anchors.get(&anchor).cloned();
                let (value, weight) = found.ok_or(Unreadable::Unsupported {
                    line: line(&span),
                    what: "an alias refers to a value that contains it",
                })?;
                self.weighs(weight)?;
                if !stdx::json::is_within(&value, depth) {
                    return Err(Unreadable::TooMuch);
                }
                return Ok(value);
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.weighs(text.len())?;
                let text = text
                    .strip_suffix('\n')
                    .filter(|_| self.breaks_off(style, &span))
                    .unwrap_or(&text);
                (scalar(text, style, tag.as_deref(), line(&span))?, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.sequence(inner)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.mapping(inner)?, anchor),
            _ => {
                let why = "did not find expected node content".to_owned();
                return Err(Unreadable::Syntax { line: line(&span), why });
            }
        };
        if anchor > 0 {
            self.anchors.insert(anchor, (value.clone(), self.weight - before));
            // The anchor stores a second copy of the value.
            self.weighs(self.weight - before)?;
        }
        Ok(value)
    }

    /// Returns true if a block scalar is the end of the body and has no final newline. The parser
    /// adds a newline, which the caller must remove.
    fn breaks_off(&self, style: ScalarStyle, span: &Span) -> bool {
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        let is_last = || span.byte_range().is_some_and(|range| range.end >= self.text.len());
        is_block && !self.text.ends_with('\n') && is_last()
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, Unreadable> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.event()?;
            if event == Event::SequenceEnd {
                return Ok(Value::Array(items));
            }
            items.push(self.value(event, span, depth)?);
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, Unreadable> {
        let mut map = Map::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.event()?;
            if event == Event::MappingEnd {
                break;
            }
            let merges = matches!(
                &event,
                Event::Scalar(text, ScalarStyle::Plain, _, None) if text.as_ref() == "<<"
            );
            let at = line(&span);
            let key = self.value(event, span, depth)?;
            let (event, span) = self.event()?;
            let value = self.value(event, span, depth)?;
            if merges {
                merged.push((at, value));
                continue;
            }
            let key = key_text(key, at)?;
            if map.contains_key(&key) && self.duplicates.len() < MAX_DUPLICATES {
                let key = &key[..key.floor_char_boundary(MAX_SHOWN)];
                self.duplicates.push(format!("line {at}: key {key:?} already set in map"));
            }
            map.insert(key, value);
        }
        for (at, value) in merged {
            merge(&mut map, value, at)?;
        }
        Ok(Value::Object(map))
    }
}

/// Merges the value of the key `<<` into `map`; existing keys stay unchanged.
fn merge(map: &mut Map<String, Value>, value: Value, line: usize) -> Result<(), Unreadable> {
    let sources = match value {
        Value::Object(source) => vec![Value::Object(source)],
        Value::Array(sources) => sources,
        other => vec![other],
    };
    for source in sources {
        let Value::Object(source) = source else {
            let what = "map merge requires map or sequence of maps as the value";
            return Err(Unreadable::Unsupported { line, what });
        };
        for (key, value) in source {
            map.entry(key).or_insert(value);
        }
    }
    Ok(())
}

/// Returns the text of a key, because JSON keys are text; a boolean or number is printed.
fn key_text(key: Value, line: usize) -> Result<String, Unreadable> {
    match key {
        Value::String(text) => Ok(text),
        Value::Bool(_) | Value::Number(_) => Ok(key.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(Unreadable::Unsupported { line, what: "a key is not a string, number or boolean" })
        }
    }
}

fn scalar(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    line: usize,
) -> Result<Value, Unreadable> {
    let core = tag.and_then(Tag::core_suffix);
    match (core, tag, style) {
        // A plain scalar is resolved by its form, even if a tag names the same type.
        (None, None, ScalarStyle::Plain) | (Some("bool" | "int" | "float" | "null"), ..) => {
            scalar::resolve(text).ok_or(Unreadable::Unsupported {
                line,
                what: "a number is not finite, which JSON does not support",
            })
        }
        _ => Ok(Value::from(text)),
    }
}

#[cfg(test)]
mod tests;
