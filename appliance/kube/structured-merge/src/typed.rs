//! Values with their type: validating, comparing, merging, removing (structured-merge-diff,
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

pub use compare::Comparison;
pub(crate) use reconcile::reconcile;

/// Deepest nesting of a typed value and of a set of fields; readers of JSON give up at 128.
pub const MAX_DEPTH: usize = 128;

/// One place where a value is not of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The place, as paths are printed; empty for the whole object.
    pub path: String,
    /// What is wrong there.
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

/// The most places that are told; the rest is counted.
const MAX_MISMATCHES: usize = 100;

/// The longest path and the longest message of one place, in bytes.
const MAX_TEXT_BYTES: usize = 1_024;

/// Every place where a value is not of its type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mismatches {
    told: Vec<Mismatch>,
    more: usize,
}

impl Mismatches {
    fn one(message: impl Into<String>) -> Self {
        let message = shortened(message.into());
        Self { told: vec![Mismatch { path: String::new(), message }], more: 0 }
    }

    fn none() -> Self {
        Self::default()
    }

    /// The places, up to a limit.
    pub fn told(&self) -> &[Mismatch] {
        &self.told
    }

    fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// Moves the places below `prefix`, which is only asked for when there are any.
    fn below(mut self, prefix: impl Fn() -> String) -> Self {
        if !self.is_empty() {
            let prefix = shortened(prefix());
            for mismatch in &mut self.told {
                mismatch.path = shortened(format!("{prefix}{}", mismatch.path));
            }
        }
        self
    }

    fn append(&mut self, other: Self) {
        let fits = MAX_MISMATCHES.saturating_sub(self.told.len()).min(other.told.len());
        self.more += other.more + other.told.len() - fits;
        self.told.extend(other.told.into_iter().take(fits));
    }

    fn or_else_ok<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

/// The text, cut where it is too long to be read.
pub(crate) fn shortened(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push('…');
    }
    text
}

impl fmt::Display for Mismatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [one] = self.told.as_slice() {
            return one.fmt(f);
        }
        f.write_str("errors:")?;
        self.told.iter().try_for_each(|one| write!(f, "\n  {one}"))?;
        match self.more {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

impl std::error::Error for Mismatches {}

/// A value that has been checked against its type.
#[derive(Debug, Clone)]
pub struct Typed<'a> {
    schema: &'a Schema,
    value: Cow<'a, Value>,
}

impl<'a> Typed<'a> {
    /// Checks that `value` is what the schema's root says.
    ///
    /// # Errors
    /// Every mismatch; also two items of one key and equal items of a set, and a value nested
    /// deeper than [`MAX_DEPTH`].
    pub fn new(schema: &'a Schema, value: Cow<'a, Value>) -> Result<Self, Mismatches> {
        Self::checked(schema, value, false)
    }

    /// As [`Typed::new`], but lists may hold duplicates: what is stored may be older than the rule.
    ///
    /// # Errors
    /// As [`Typed::new`].
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

    /// A part of a value that was checked.
    pub(crate) fn unchecked(schema: &'a Schema, value: Value) -> Self {
        Self { schema, value: Cow::Owned(value) }
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The value, without its type.
    pub fn into_value(self) -> Value {
        self.value.into_owned()
    }

    /// The type's schema.
    pub fn schema(&self) -> &'a Schema {
        self.schema
    }

    /// Every leaf and item of the value.
    pub fn field_set(&self) -> Set {
        field_set::field_set(self.schema, &self.value)
    }

    /// What `other` removes from, changes in and adds to this value.
    ///
    /// # Errors
    /// When the two do not fit together.
    pub fn compare(&self, other: &Typed<'_>) -> Result<Comparison, Mismatches> {
        compare::compare(self.schema, &self.value, &other.value)
    }

    /// This value with the leaves of `config` put in; nothing is removed. Lists are ordered as in
    /// `config` as far as it names their items.
    ///
    /// # Errors
    /// When the two do not fit together.
    pub fn merge(&self, config: &Typed<'_>) -> Result<Typed<'a>, Mismatches> {
        let value = merge::merge(self.schema, &self.value, &config.value)?;
        Ok(Self { schema: self.schema, value: Cow::Owned(value) })
    }

    /// This value without the items and fields in `items`.
    #[must_use]
    pub fn remove(&self, items: &Set) -> Typed<'a> {
        let value = remove::remove(self.schema, self.schema.root(), &self.value, items);
        Self { schema: self.schema, value: Cow::Owned(value) }
    }
}

#[cfg(test)]
mod tests;
