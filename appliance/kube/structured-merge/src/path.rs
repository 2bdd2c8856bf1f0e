//! Field paths: names of the fields of an object (structured-merge-diff, `fieldpath`).

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

use crate::value;

/// Step of a path from a container to a value in it. The steps are ordered by kind: fields, keys,
/// values, indices.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// Field of an object, written `f:`.
    Field(String),
    /// List item with these values of its key fields, written `k:`; key fields sorted by name.
    Key(Vec<(String, Value)>),
    /// Set item that equals the value, written `v:`.
    Value(Value),
    /// List item at the index, written `i:`.
    Index(i64),
}

/// Error of a path element that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the path element {element:?}: {why}")]
pub struct UnreadableElement {
    /// Text of the path element.
    pub element: String,
    /// Reason why the text is invalid.
    pub why: &'static str,
}

impl PathElement {
    /// Creates the path element of an object's field.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// Creates the path element of a list item from its key fields.
    pub fn key(mut fields: Vec<(String, Value)>) -> Self {
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self::Key(fields)
    }

    /// Parses a path element of `fieldsV1`, such as `f:spec` or `k:{"name":"x"}`. Returns `None`
    /// for an element kind of a later version, which readers skip.
    ///
    /// # Errors
    /// The text is not a valid path element.
    pub fn parse(text: &str) -> Result<Option<Self>, UnreadableElement> {
        let wrong = |why| UnreadableElement { element: text.to_owned(), why };
        if text.len() < 2 {
            return Err(wrong("it is shorter than two characters"));
        }
        let Some((kind, rest)) = text.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
            return Err(wrong("its second character is not a colon"));
        };
        let json = |text: &str| {
            serde_json::from_str::<Value>(text).map_err(|_| wrong("its value is not JSON"))
        };
        Ok(Some(match kind {
            "f" => Self::Field(rest.to_owned()),
            "v" => Self::Value(json(rest)?),
            "k" => match json(rest)? {
                Value::Object(map) => Self::key(map.into_iter().collect()),
                Value::Null => Self::Key(Vec::new()),
                _ => return Err(wrong("its key is not an object")),
            },
            "i" => Self::Index(rest.parse().map_err(|_| wrong("its index is not a number"))?),
            _ => return Ok(None),
        }))
    }

    /// Returns the text of the path element in `fieldsV1`.
    pub fn written(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Index(at) => format!("i:{at}"),
            Self::Value(value) => {
                let mut out = "v:".to_owned();
                go_text::json_iterator::push_json(&mut out, value);
                out
            }
            Self::Key(fields) => {
                let mut out = "k:{".to_owned();
                for (at, (name, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    go_text::json_iterator::push_json_text(&mut out, name, false);
                    out.push(':');
                    go_text::json_iterator::push_json(&mut out, value);
                }
                out.push('}');
                out
            }
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(one), Self::Field(other)) => one.cmp(other),
            (Self::Key(one), Self::Key(other)) => compare_keys(one, other),
            (Self::Value(one), Self::Value(other)) => value::compare(one, other),
            (Self::Index(one), Self::Index(other)) => one.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn compare_keys(one: &[(String, Value)], other: &[(String, Value)]) -> Ordering {
    let mut fields = one.iter().zip(other).map(|((name, one), (other_name, other))| {
        name.cmp(other_name).then_with(|| value::compare(one, other))
    });
    fields.find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Index(at) => write!(f, "[{at}]"),
            Self::Value(value) => write!(f, "[={}]", shown(value)),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", shown(value))?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Formats a value in a path, for a message.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => go_text::number(number),
        Value::String(text) => go_text::quoted(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(shown).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => shown_object(map),
    }
}

fn shown_object(map: &Map<String, Value>) -> String {
    map.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect()
}

/// Path of a field inside an object; printed as `.spec.ports[port=80].name`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// Creates a path with only object fields.
    pub fn fields(names: &[&str]) -> Self {
        Self(names.iter().map(|name| PathElement::field(*name)).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::PathElement;

    #[test]
    fn elements_are_read_and_written() {
        for text in [
            "f:spec",
            "f:",
            "f:a.b/c",
            r#"k:{"name":"x","port":80}"#,
            r#"k:{"a":"\u003cb\u003e"}"#,
            r#"v:"x""#,
            "v:1.5",
            "v:null",
            "i:-3",
        ] {
            let element = PathElement::parse(text).unwrap().unwrap();
            assert_eq!(element.written(), text);
        }
        let unsorted = PathElement::parse(r#"k:{"b":80.0,"a":true}"#).unwrap().unwrap();
        assert_eq!(unsorted.written(), r#"k:{"a":true,"b":80}"#);
        assert_eq!(unsorted.to_string(), "[a=true,b=80]");
        assert_eq!(PathElement::parse("x:future").unwrap(), None);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "f", "spec", "ff:x", "i:x", "v:", "v:{", "k:", "k:[]", "k:1", "é:x"] {
            assert!(PathElement::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn elements_have_an_order() {
        let key = |fields: &[(&str, serde_json::Value)]| {
            let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            PathElement::key(fields.collect())
        };
        let ascending = [
            PathElement::field("a"),
            PathElement::field("b"),
            key(&[("a", json!(1))]),
            key(&[("a", json!(1)), ("b", json!(0))]),
            key(&[("a", json!(2))]),
            key(&[("b", json!(0))]),
            PathElement::Value(json!(1)),
            PathElement::Value(json!("a")),
            PathElement::Index(1),
            PathElement::Index(10),
        ];
        assert!(ascending.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
