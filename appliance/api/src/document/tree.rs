//! YAML as a tree with line numbers. Scalars stay text, as in upstream's decoder (`yaml.v3`) when
//! it decodes into strings.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput};

/// Maximum nesting depth of maps and lists.
const DEPTH_MAX: usize = 64;
/// Maximum weight of a document: bytes of text, and [`NODE_WEIGHT`] for each node. Each use of an
/// alias counts. Without this limit, a few lines of aliases can exhaust the memory.
const WEIGHT_MAX: usize = 16 * 1024 * 1024;
/// Weight of a node in addition to its text, in bytes.
const NODE_WEIGHT: usize = 64;
/// Maximum length of a key in a message, in bytes; the rest is cut off.
const SHOWN_MAX: usize = 64;

/// Value with the number of its first line, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub line: usize,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Empty value, `~` or `null`.
    Null,
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// Key of a map with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub line: usize,
    pub key: String,
    pub node: Node,
}

/// Reason why a text is not valid YAML, with its line. It omits the text, which may hold secrets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub line: usize,
    pub why: String,
}

impl Unreadable {
    fn new(line: usize, why: impl Into<String>) -> Self {
        Self { line, why: why.into() }
    }
}

/// Treatment of a key that occurs twice in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DuplicateKeys {
    Refuse,
    /// Keeps both values: both branches of a template's condition are in the text.
    KeepBoth,
}

/// Parses the first YAML document of `text`; an empty document gives `Null`.
pub(super) fn read(text: &str, twice: DuplicateKeys) -> Result<Node, Unreadable> {
    let parser = Parser::new_from_str(text);
    let mut reader = Reader { text, parser, anchors: HashMap::new(), weight: 0, twice };
    loop {
        let (event, span) = reader.event()?;
        match event {
            Event::StreamEnd | Event::DocumentEnd => {
                return Ok(Node { line: 1, value: Value::Null });
            }
            Event::StreamStart | Event::DocumentStart(..) => {}
            first => {
                let node = reader.node(first, span, DEPTH_MAX)?;
                // The end of the document proves that nothing follows its value.
                reader.event()?;
                return Ok(node);
            }
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, (Node, usize)>,
    weight: usize,
    twice: DuplicateKeys,
}

impl<'a> Reader<'a> {
    fn event(&mut self) -> Result<(Event<'a>, Span), Unreadable> {
        loop {
            match self.parser.next() {
                None => return Ok((Event::StreamEnd, Span::default())),
                Some(Ok((Event::Comment(..) | Event::Anchor(..), _))) => {}
                Some(Ok(event)) => return Ok(event),
                Some(Err(error)) => {
                    return Err(Unreadable::new(error.marker().line(), error.info()));
                }
            }
        }
    }

    fn weigh(&mut self, weight: usize, line: usize) -> Result<(), Unreadable> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > WEIGHT_MAX {
            return Err(Unreadable::new(
                line,
                "the document is too large, possibly because of its aliases",
            ));
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Unreadable> {
        let line = span.start.line();
        let before = self.weight;
        self.weigh(NODE_WEIGHT, line)?;
        let too_deep =
            || Unreadable::new(line, format!("nested more than {DEPTH_MAX} levels deep"));
        let inner = depth.checked_sub(1).ok_or_else(too_deep)?;
        let (value, anchor) = match event {
            Event::Alias(anchor) => {
                let found = self.anchors.get(&anchor).cloned();
                let (node, weight) = found.ok_or_else(|| {
                    Unreadable::new(line, "an alias refers to a value that contains it")
                })?;
                self.weigh(weight, line)?;
                return if node.is_within(depth) { Ok(node) } else { Err(too_deep()) };
            }
            Event::Scalar(text, style, anchor, _) => {
                self.weigh(text.len(), line)?;
                (self.scalar(&text, style, span), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.list(inner)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(inner)?, anchor),
            _ => return Err(Unreadable::new(line, "expected a value")),
        };
        let node = Node { line, value };
        if anchor > 0 {
            let weight = self.weight - before;
            self.anchors.insert(anchor, (node.clone(), weight));
            self.weigh(weight, line)?;
        }
        Ok(node)
    }

    fn scalar(&self, text: &str, style: ScalarStyle, span: Span) -> Value {
        let null =
            style == ScalarStyle::Plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
        if null {
            return Value::Null;
        }
        let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        let is_last = || span.byte_range().is_some_and(|range| range.end >= self.text.len());
        // The parser adds a line end to a block that ends with the text.
        let added = block && !self.text.ends_with('\n') && is_last();
        let text = text.strip_suffix('\n').filter(|_| added).unwrap_or(text);
        Value::Text(text.to_owned())
    }

    fn list(&mut self, depth: usize) -> Result<Value, Unreadable> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.event()?;
            if event == Event::SequenceEnd {
                return Ok(Value::List(items));
            }
            items.push(self.node(event, span, depth)?);
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Unreadable> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut merged = Vec::new();
        let mut lines: HashMap<String, usize> = HashMap::new();
        loop {
            let (event, span) = self.event()?;
            if event == Event::MappingEnd {
                break;
            }
            let merges = matches!(
                &event,
                Event::Scalar(text, ScalarStyle::Plain, _, None) if text.as_ref() == "<<"
            );
            let key = match event {
                // A key is its text, independent of the type that a value of that text has.
                Event::Scalar(text, _, 0, _) => {
                    self.weigh(NODE_WEIGHT + text.len(), span.start.line())?;
                    Node { line: span.start.line(), value: Value::Text(text.to_string()) }
                }
                event => self.node(event, span, depth)?,
            };
            let (event, span) = self.event()?;
            let node = self.node(event, span, depth)?;
            if merges {
                merged.push(node);
                continue;
            }
            let line = key.line;
            let key = match key.value {
                Value::Text(text) => text,
                Value::Null => String::new(),
                Value::List(_) | Value::Map(_) => {
                    return Err(Unreadable::new(line, "a key must be text, not a list or a map"));
                }
            };
            if let Some(first) = lines.insert(key.clone(), line)
                && self.twice == DuplicateKeys::Refuse
            {
                let why = format!("key {:?} is given twice, first in line {first}", shown(&key));
                return Err(Unreadable::new(line, why));
            }
            entries.push(Entry { line, key, node });
        }
        for node in merged {
            merge(&mut entries, &mut lines, node)?;
        }
        Ok(Value::Map(entries))
    }
}

/// Merges the value of `<<` (YAML merge key) into `entries`. Existing keys keep their values.
fn merge(
    entries: &mut Vec<Entry>,
    lines: &mut HashMap<String, usize>,
    node: Node,
) -> Result<(), Unreadable> {
    let sources = match node.value {
        Value::List(sources) => sources,
        _ => vec![node],
    };
    for source in sources {
        let Value::Map(more) = source.value else {
            return Err(Unreadable::new(source.line, "<< must be followed by a map"));
        };
        for entry in more {
            if !lines.contains_key(&entry.key) {
                lines.insert(entry.key.clone(), entry.line);
                entries.push(entry);
            }
        }
    }
    Ok(())
}

impl Node {
    fn is_within(&self, depth: usize) -> bool {
        let Some(inner) = depth.checked_sub(1) else { return false };
        match &self.value {
            Value::Null | Value::Text(_) => true,
            Value::List(items) => items.iter().all(|item| item.is_within(inner)),
            Value::Map(entries) => entries.iter().all(|entry| entry.node.is_within(inner)),
        }
    }
}

/// Returns at most the first [`SHOWN_MAX`] bytes of `text`, for a message.
pub(super) fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN_MAX)]
}
