//! A document as its leaves: the path to each without the arrays on the way, and which element of
//! which array it lies in.

use serde_json::Value;

use crate::value::Leaf;
use crate::{Error, LEAVES_MAX};

/// Parts the names of a path, as Quamina does.
pub const SEPARATOR: char = '\n';

/// A document, taken apart once for all patterns.
#[derive(Debug, Clone, Default)]
pub struct Event {
    /// Leaves, sorted by path.
    fields: Vec<Field>,
}

/// A leaf of the document.
#[derive(Debug, Clone)]
pub struct Field {
    path: String,
    /// Value of the leaf.
    pub leaf: Leaf,
    /// Arrays it lies in, the outermost first: which array, which element.
    trail: Vec<(usize, usize)>,
}

impl Field {
    /// True if no array holds the two leaves in different elements.
    pub fn shares_elements(&self, other: &Self) -> bool {
        let apart = |(array, at): &(usize, usize)| {
            other.trail.iter().any(|(its, its_at)| its == array && its_at != at)
        };
        !self.trail.iter().any(apart)
    }
}

impl Event {
    /// Take a document apart.
    ///
    /// # Errors
    /// [`Error::Large`].
    pub fn new(document: &Value) -> Result<Self, Error> {
        let mut walk = Walk::default();
        walk.value(document)?;
        let mut fields = walk.fields;
        // Stable: leaves of one path stay in the document's order.
        fields.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { fields })
    }

    /// The leaves at `path`, by their place among all.
    pub fn at(&self, path: &str) -> impl Iterator<Item = (usize, &Field)> {
        let from = self.fields.partition_point(|field| field.path.as_str() < path);
        let fields = self.fields.iter().enumerate().skip(from);
        fields.take_while(move |(_, field)| field.path == path)
    }

    /// The leaf at a place.
    pub fn field(&self, place: usize) -> Option<&Field> {
        self.fields.get(place)
    }
}

#[derive(Default)]
struct Walk {
    fields: Vec<Field>,
    path: Vec<String>,
    trail: Vec<(usize, usize)>,
    arrays: usize,
}

impl Walk {
    fn value(&mut self, value: &Value) -> Result<(), Error> {
        let leaf = match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.path.push(name.clone());
                    self.value(member)?;
                    self.path.pop();
                }
                return Ok(());
            }
            Value::Array(items) => {
                let array = self.arrays;
                self.arrays += 1;
                for (at, item) in items.iter().enumerate() {
                    self.trail.push((array, at));
                    self.value(item)?;
                    self.trail.pop();
                }
                return Ok(());
            }
            Value::Null => Leaf::Null,
            Value::Bool(value) => Leaf::Bool(*value),
            Value::Number(number) => Leaf::number(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => Leaf::Text(text.clone()),
        };
        if self.fields.len() >= LEAVES_MAX {
            return Err(Error::Large);
        }
        let path = self.path.join(&String::from(SEPARATOR));
        self.fields.push(Field { path, leaf, trail: self.trail.clone() });
        Ok(())
    }
}
