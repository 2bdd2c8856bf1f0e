//! JSON document as a list of leaves. A leaf has its path without array indexes, and the array
//! elements that contain it.

use serde_json::Value;

use crate::value::Leaf;
use crate::{Error, LEAVES_MAX};

/// Separator between the names of a path, as in Quamina.
pub const SEPARATOR: char = '\n';

/// Leaves of a JSON document, computed once for all patterns.
#[derive(Debug, Clone, Default)]
pub struct Event {
    /// Leaves, sorted by path.
    fields: Vec<Field>,
}

/// Leaf of the document: a value that is neither an object nor an array.
#[derive(Debug, Clone)]
pub struct Field {
    path: String,
    /// Value of the leaf.
    pub leaf: Leaf,
    /// Arrays around the leaf, the outermost first: number of the array, index in the array.
    trail: Vec<(usize, usize)>,
}

impl Field {
    /// Returns true unless an array has the two leaves in different elements.
    pub fn shares_elements(&self, other: &Self) -> bool {
        let apart = |(array, at): &(usize, usize)| {
            other.trail.iter().any(|(its, its_at)| its == array && its_at != at)
        };
        !self.trail.iter().any(apart)
    }
}

impl Event {
    /// Splits a document into its leaves.
    ///
    /// # Errors
    /// [`Error::Large`] for more than [`LEAVES_MAX`] leaves.
    pub fn new(document: &Value) -> Result<Self, Error> {
        let mut walk = Walk::default();
        walk.value(document)?;
        let mut fields = walk.fields;
        // Stable: leaves of one path stay in the document's order.
        fields.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { fields })
    }

    /// Returns the leaves at `path`, each with its index in the whole list.
    pub fn at(&self, path: &str) -> impl Iterator<Item = (usize, &Field)> {
        let from = self.fields.partition_point(|field| field.path.as_str() < path);
        let fields = self.fields.iter().enumerate().skip(from);
        fields.take_while(move |(_, field)| field.path == path)
    }

    /// Returns the leaf at index `place`; `None` if there are fewer leaves.
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
