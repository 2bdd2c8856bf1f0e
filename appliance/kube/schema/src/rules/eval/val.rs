//! CEL values. Values of an object are read in place according to their schema; only values that a
//! rule creates are allocated.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use kube_cel::cel::Value as Foreign;
use serde_json::{Map, Value};

use super::library;
use super::quantity::Quantity;
use crate::node::{ListType, Node};
use crate::rules::field_name::property_of;
use crate::text::format::Format;

/// Value during the evaluation of a rule.
#[derive(Debug, Clone)]
pub(in crate::rules) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    /// Object with named fields.
    Object(Object<'a>),
    /// Map in an object; its values have the schema, if there is one.
    Keyed(&'a Map<String, Value>, Option<&'a Node>),
    /// List in an object.
    Items(&'a [Value], &'a Node),
    /// List created by a rule. The result of `left + right` keeps the schema of `left`.
    List(Rc<Vec<Val<'a>>>, Option<&'a Node>),
    /// Map created by a rule.
    Map(Rc<Entries<'a>>),
    Optional(Option<Rc<Val<'a>>>),
    /// CEL type as a value, such as the result of `type(x)`; holds the type name.
    Kind(Rc<str>),
    /// Error with its message, as a value: a comprehension may still ignore it.
    Failed(Rc<str>),
    Quantity(Quantity),
    /// Bytes, durations, timestamps, and other values of kube-cel.
    Foreign(Foreign),
}

/// Map entries by key, each with its original key and its value.
pub(in crate::rules) type Entries<'a> = BTreeMap<Key, (Val<'a>, Val<'a>)>;

/// String: borrowed from the object, or created by a rule.
#[derive(Debug, Clone)]
pub(in crate::rules) enum Text<'a> {
    Read(&'a str),
    Made(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Read(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// Key of a map entry. Numbers of different types are the same key if their values are equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::rules) enum Key {
    Bool(bool),
    Number(i128),
    Text(String),
}

impl Key {
    /// Returns the map key for a value; `None` for a type that cannot be a key.
    #[expect(clippy::cast_possible_truncation, reason = "only whole numbers are converted")]
    pub fn of(value: &Val<'_>) -> Option<Self> {
        match value {
            Val::Bool(flag) => Some(Self::Bool(*flag)),
            Val::Int(number) => Some(Self::Number(i128::from(*number))),
            Val::Uint(number) => Some(Self::Number(i128::from(*number))),
            Val::Double(number) if number.trunc() == *number => Some(Self::Number(*number as i128)),
            Val::Text(text) => Some(Self::Text(text.to_string())),
            _ => None,
        }
    }
}

/// Object with named fields. The root also has the fields of every Kubernetes object.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct Object<'a> {
    pub map: &'a Map<String, Value>,
    pub node: &'a Node,
    pub is_root: bool,
}

/// Result of looking up a field of an object.
pub(in crate::rules) enum Field<'a> {
    /// The schema does not have the field.
    Unknown,
    /// The schema has the field, but the object does not.
    Absent,
    Present(Val<'a>),
}

impl<'a> Val<'a> {
    pub fn text(text: &str) -> Self {
        Self::Text(Text::Made(Rc::from(text)))
    }

    fn read(text: &'a str) -> Self {
        Self::Text(Text::Read(text))
    }

    pub fn list(items: Vec<Val<'a>>) -> Self {
        Self::List(Rc::new(items), None)
    }

    pub fn some(value: Val<'a>) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// Reads a value of the object according to its schema.
    pub fn of(value: &'a Value, node: &'a Node, is_root: bool) -> Self {
        if node.int_or_string {
            return scalar(value);
        }
        match value {
            Value::Object(map) => match (&node.additional, node.additional_node()) {
                (Some(_), below) if node.properties.is_empty() => Self::Keyed(map, below),
                _ => Self::Object(Object { map, node, is_root }),
            },
            Value::Array(items) => Self::Items(items, node),
            Value::String(text) => formatted(text, node),
            Value::Number(number) if node.kind == "number" => {
                Self::Double(number.as_f64().unwrap_or_default())
            }
            other => scalar(other),
        }
    }

    /// Reads a value without a schema.
    fn bare(value: &'a Value) -> Self {
        match value {
            Value::Object(map) => Self::Keyed(map, None),
            Value::Array(items) => Self::list(items.iter().map(Self::bare).collect()),
            other => scalar(other),
        }
    }

    pub fn keyed_value(value: &'a Value, node: Option<&'a Node>) -> Self {
        match node {
            Some(node) => Self::of(value, node, node.embedded),
            None => Self::bare(value),
        }
    }

    pub fn kind_name(&self) -> Rc<str> {
        let name = match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Object(_) | Self::Keyed(..) | Self::Map(_) => "map",
            Self::Items(..) | Self::List(..) => "list",
            Self::Optional(_) => "optional_type",
            Self::Kind(_) => "type",
            Self::Failed(_) => "error",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Foreign(value) => match value {
                Foreign::Bytes(_) => "bytes",
                Foreign::Duration(_) => "google.protobuf.Duration",
                Foreign::Timestamp(_) => "google.protobuf.Timestamp",
                Foreign::Opaque(opaque) => opaque.runtime_type_name(),
                _ => "dyn",
            },
        };
        Rc::from(name)
    }

    /// Returns the size in characters, bytes, items or fields; `None` for values without a size.
    pub fn size(&self) -> Option<usize> {
        Some(match self {
            Self::Text(text) => text.chars().count(),
            Self::Object(object) => object.map.len(),
            Self::Keyed(map, _) => map.len(),
            Self::Items(items, _) => items.len(),
            Self::List(items, _) => items.len(),
            Self::Map(entries) => entries.len(),
            Self::Foreign(Foreign::Bytes(bytes)) => bytes.len(),
            _ => return None,
        })
    }

    pub fn is_list(&self) -> bool {
        matches!(self, Self::Items(..) | Self::List(..))
    }

    /// Returns the items of a list or the keys of a map; `None` for any other value.
    pub fn elements<'v>(&'v self) -> Option<Box<dyn Iterator<Item = Val<'a>> + 'v>> {
        Some(match self {
            Self::Items(items, node) => {
                let item = |item| Val::keyed_value(item, node.items());
                Box::new(items.iter().map(item))
            }
            Self::List(items, _) => Box::new(items.iter().cloned()),
            Self::Keyed(map, _) => Box::new(map.keys().map(|key| Val::read(key))),
            Self::Object(object) => Box::new(object.map.keys().map(|key| Val::read(key))),
            Self::Map(entries) => Box::new(entries.values().map(|(key, _)| key.clone())),
            _ => return None,
        })
    }

    pub fn item(&self, index: usize) -> Option<Val<'a>> {
        match self {
            Self::Items(items, node) => {
                items.get(index).map(|item| Val::keyed_value(item, node.items()))
            }
            Self::List(items, _) => items.get(index).cloned(),
            _ => None,
        }
    }

    /// Returns schema and list type of a list; `None` for other values and lists without schema.
    pub fn list_type(&self) -> Option<(&'a Node, ListType)> {
        match self {
            Self::Items(_, node) | Self::List(_, Some(node)) => Some((*node, node.list_type()?)),
            _ => None,
        }
    }

    /// Copies the value for a library; the copy is as large as the value.
    pub fn to_foreign(&self) -> Foreign {
        match self {
            Self::Bool(flag) => Foreign::Bool(*flag),
            Self::Int(number) => Foreign::Int(*number),
            Self::Uint(number) => Foreign::UInt(*number),
            Self::Double(number) => Foreign::Float(*number),
            Self::Text(text) => Foreign::from(&**text),
            Self::Foreign(value) => value.clone(),
            Self::Items(..) | Self::List(..) => {
                let items = self.elements().into_iter().flatten();
                Foreign::List(items.map(|item| item.to_foreign()).collect::<Vec<_>>().into())
            }
            // Only `format` receives these values, to print them.
            Self::Object(_) | Self::Keyed(..) | Self::Map(_) | Self::Quantity(_) => {
                Foreign::from(self.kind_name().as_ref())
            }
            Self::Kind(name) => Foreign::from(name.as_ref()),
            Self::Null | Self::Optional(_) | Self::Failed(_) => Foreign::Null,
        }
    }

    pub fn from_foreign(value: Foreign) -> Self {
        match value {
            Foreign::Null => Self::Null,
            Foreign::Bool(flag) => Self::Bool(flag),
            Foreign::Int(number) => Self::Int(number),
            Foreign::UInt(number) => Self::Uint(number),
            Foreign::Float(number) => Self::Double(number),
            Foreign::String(text) => Self::text(&text),
            Foreign::List(items) => {
                Self::list(items.iter().cloned().map(Self::from_foreign).collect())
            }
            Foreign::Map(map) => {
                let entry = |(key, value): (&_, &Foreign)| {
                    let key = Self::from_foreign(Foreign::from(key));
                    Some((Key::of(&key)?, (key, Self::from_foreign(value.clone()))))
                };
                Self::Map(Rc::new(map.map.iter().filter_map(entry).collect()))
            }
            Foreign::Opaque(opaque) if opaque.runtime_type_name() == "optional_type" => {
                library::optional(&opaque)
            }
            other => Self::Foreign(other),
        }
    }

    /// Returns the key as messages show it.
    pub fn printed(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Uint(number) => number.to_string(),
            Self::Double(number) => go_text::float(*number),
            Self::Bool(flag) => flag.to_string(),
            other => other.kind_name().to_string(),
        }
    }
}

fn scalar<'a>(value: &'a Value) -> Val<'a> {
    match value {
        Value::Bool(flag) => Val::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Val::Int(integer),
            None => integral(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Val::read(text),
        _ => Val::Null,
    }
}

/// Converts a float in a field of integers: `2.0` becomes 2.
#[expect(clippy::cast_possible_truncation, reason = "only integers within bounds are converted")]
fn integral<'a>(number: f64) -> Val<'a> {
    let exact = number.trunc() == number && number.abs() < 9e15;
    if exact { Val::Int(number as i64) } else { Val::Double(number) }
}

fn formatted<'a>(text: &'a str, node: &Node) -> Val<'a> {
    let read = match node.limits.format.filter(|_| node.kind == "string") {
        Some(Format::Byte) => library::convert("base64.decode", text),
        Some(Format::Duration) => library::convert("duration", text),
        Some(Format::DateTime) => library::convert("timestamp", text),
        Some(Format::Date) => library::convert("timestamp", &format!("{text}T00:00:00Z")),
        _ => None,
    };
    read.map_or_else(|| Val::read(text), Val::from_foreign)
}

impl<'a> Object<'a> {
    /// Looks up the field that a rule calls `name`.
    pub fn field(&self, name: &str) -> Field<'a> {
        if self.is_root && matches!(name, "apiVersion" | "kind") {
            return match self.map.get(name) {
                None => Field::Absent,
                Some(value) => Field::Present(scalar(value)),
            };
        }
        if self.is_root && name == "metadata" {
            return match self.map.get(name) {
                Some(Value::Object(map)) => Field::Present(names_of(map)),
                _ => Field::Absent,
            };
        }
        let Some((name, node)) = property_of(self.node, name) else { return Field::Unknown };
        match self.map.get(name) {
            None => Field::Absent,
            Some(value) => Field::Present(Val::of(value, node, node.embedded)),
        }
    }
}

/// Returns the part of metadata that rules can use: `name` and `generateName`.
fn names_of<'a>(metadata: &'a Map<String, Value>) -> Val<'a> {
    let entry = |name: &str| {
        let value = scalar(metadata.get(name)?);
        Some((Key::Text(name.to_owned()), (Val::text(name), value)))
    };
    Val::Map(Rc::new(["name", "generateName"].into_iter().filter_map(entry).collect()))
}
