//! Values with their type: validation, comparison, merging and removal (structured-merge-diff,
//! `typed`).

mod compare;
mod field_set;
mod item;
mod merge;
mod reconcile;
mod remove;
mod validate;

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::schema::Schema;
use crate::set::Set;
use crate::value::MAX_DEPTH;

pub use compare::Comparison;
pub(crate) use reconcile::reconcile;

/// Mismatch between a value and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Path of the value; empty for the whole object.
    pub path: String,
    /// Description of the mismatch.
    pub message: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// Maximum number of mismatches in a message; the message only counts further mismatches.
const MAX_MISMATCHES: usize = 100;

/// Maximum length of the path and of the message of one mismatch, in bytes.
const MAX_TEXT_BYTES: usize = 1_024;

/// All mismatches between a value and its type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mismatches {
    listed: Vec<Mismatch>,
    more: usize,
}

impl Mismatches {
    fn one(message: impl Into<String>) -> Self {
        let message = shortened(message.into());
        Self { listed: vec![Mismatch { path: String::new(), message }], more: 0 }
    }

    fn none() -> Self {
        Self::default()
    }

    /// Returns the first 100 mismatches.
    pub fn listed(&self) -> &[Mismatch] {
        &self.listed
    }

    fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Prepends `prefix` to all paths; calls `prefix` only if there are mismatches.
    fn below(mut self, prefix: impl Fn() -> String) -> Self {
        if !self.is_empty() {
            let prefix = shortened(prefix());
            for mismatch in &mut self.listed {
                mismatch.path = shortened(format!("{prefix}{}", mismatch.path));
            }
        }
        self
    }

    fn append(&mut self, other: Self) {
        let fits = MAX_MISMATCHES.saturating_sub(self.listed.len()).min(other.listed.len());
        self.more += other.more + other.listed.len() - fits;
        self.listed.extend(other.listed.into_iter().take(fits));
    }

    fn or_else_ok<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

/// Truncates a text to [`MAX_TEXT_BYTES`].
pub(crate) fn shortened(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push('…');
    }
    text
}

impl fmt::Display for Mismatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [one] = self.listed.as_slice() {
            return one.fmt(f);
        }
        f.write_str("errors:")?;
        self.listed.iter().try_for_each(|one| write!(f, "\n  {one}"))?;
        match self.more {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

impl std::error::Error for Mismatches {}

/// Value that has been checked against its type.
#[derive(Debug, Clone)]
pub struct Typed<'a> {
    schema: &'a Schema,
    value: Cow<'a, Value>,
}

impl<'a> Typed<'a> {
    /// Checks `value` against the root type of the schema.
    ///
    /// # Errors
    /// All mismatches. Items with the same key, equal items of a set, and a nesting deeper than
    /// [`MAX_DEPTH`] are mismatches too.
    pub fn new(schema: &'a Schema, value: Cow<'a, Value>) -> Result<Self, Mismatches> {
        Self::checked(schema, value, false)
    }

    /// Checks `value` as [`Typed::new`], but allows duplicates in lists, because a stored object
    /// may be older than the rule.
    ///
    /// # Errors
    /// The errors of [`Typed::new`].
    pub fn with_duplicates(schema: &'a Schema, value: Cow<'a, Value>) -> Result<Self, Mismatches> {
        Self::checked(schema, value, true)
    }

    fn checked(
        schema: &'a Schema,
        value: Cow<'a, Value>,
        duplicates: bool,
    ) -> Result<Self, Mismatches> {
        if !stdx::json::is_within(&value, MAX_DEPTH) {
            return Err(Mismatches::one(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let mismatches = validate::validate(schema, schema.root(), &value, duplicates);
        mismatches.or_else_ok(Self { schema, value })
    }

    /// Creates a typed value without a check, from a value that was checked before.
    pub(crate) fn unchecked(schema: &'a Schema, value: Value) -> Self {
        Self { schema, value: Cow::Owned(value) }
    }

    /// Returns the value without its type.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Consumes the typed value and returns the value.
    pub fn into_value(self) -> Value {
        self.value.into_owned()
    }

    /// Returns the schema with the type of the value.
    pub fn schema(&self) -> &'a Schema {
        self.schema
    }

    /// Returns the set of every leaf and list item of the value.
    pub fn field_set(&self) -> Set {
        field_set::field_set(self.schema, &self.value)
    }

    /// Returns the fields that `other` removes from, changes in and adds to this value.
    ///
    /// # Errors
    /// The two values do not match the same type.
    pub fn compare(&self, other: &Typed<'_>) -> Result<Comparison, Mismatches> {
        compare::compare(self.schema, &self.value, &other.value)
    }

    /// Merges the leaves of `config` into this value; removes nothing. List items that are in
    /// `config` get its order.
    ///
    /// # Errors
    /// The two values do not match the same type.
    pub fn merge(&self, config: &Typed<'_>) -> Result<Typed<'a>, Mismatches> {
        let value = merge::merge(self.schema, &self.value, &config.value)?;
        Ok(Self { schema: self.schema, value: Cow::Owned(value) })
    }

    /// Returns a copy of this value without the items and fields in `items`.
    #[must_use]
    pub fn remove(&self, items: &Set) -> Typed<'a> {
        let value = remove::remove(self.schema, self.schema.root(), &self.value, items);
        Self { schema: self.schema, value: Cow::Owned(value) }
    }
}

#[cfg(test)]
mod tests;
