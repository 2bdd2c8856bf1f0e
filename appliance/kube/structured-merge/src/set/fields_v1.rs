//! JSON form of a set: `fieldsV1` (structured-merge-diff, `fieldpath/serialize.go`).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Set;
use crate::path::{PathElement, UnreadableElement};
use crate::value::MAX_DEPTH;

/// Error of a `fieldsV1` that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableSet {
    /// A key is not a valid path element.
    #[error("cannot read a set of fields: {0}")]
    Element(#[from] UnreadableElement),
    /// The value of a key is not an object.
    #[error("cannot read a set of fields: the value of {0:?} is not an object")]
    NoObject(String),
    /// The JSON is nested deeper than [`MAX_DEPTH`].
    #[error("cannot read a set of fields nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

impl Set {
    /// Parses `fieldsV1`. Ignores path elements of unknown kinds.
    ///
    /// # Errors
    /// The JSON is not a valid set of fields.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, UnreadableSet> {
        let (set, _) = read(fields, "", MAX_DEPTH)?;
        Ok(set.unwrap_or_default())
    }

    /// Returns the value of `fieldsV1` for the set.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.object(false))
    }

    fn object(&self, with_self: bool) -> Map<String, Value> {
        let mut object = Map::new();
        if with_self && !(self.members.is_empty() && self.children.is_empty()) {
            object.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, inside) in self.level() {
            let is_member = self.members.contains(element);
            let inside = inside.map(|inside| inside.object(is_member)).unwrap_or_default();
            object.insert(element.written(), Value::Object(inside));
        }
        object
    }

    /// Returns members and children of this level together, in order.
    fn level(&self) -> impl Iterator<Item = (&PathElement, Option<&Set>)> {
        let elements: BTreeSet<_> = self.members.iter().chain(self.children.keys()).collect();
        elements.into_iter().map(|element| (element, self.children.get(element)))
    }
}

/// Returns the set below a value, if any, and true if the value itself is a member.
fn read(fields: &Value, under: &str, levels: usize) -> Result<(Option<Set>, bool), UnreadableSet> {
    let levels = levels.checked_sub(1).ok_or(UnreadableSet::TooDeep)?;
    let empty = Map::new();
    let object = match fields {
        Value::Object(object) => object,
        Value::Null => &empty,
        _ => return Err(UnreadableSet::NoObject(under.to_owned())),
    };
    let mut set: Option<Set> = None;
    let mut is_member = false;
    for (key, inside) in object {
        if key == "." {
            is_member = true;
            continue;
        }
        let Some(element) = PathElement::parse(key)? else { continue };
        let (inside, inside_is_member) = read(inside, key, levels)?;
        if inside_is_member {
            set.get_or_insert_default().members.insert(element.clone());
        }
        if let Some(inside) = inside {
            set.get_or_insert_default().children.entry(element).or_default().extend(&inside);
        }
    }
    is_member |= set.is_none();
    Ok((set, is_member))
}
