//! Label and field selectors: which objects of a list or watch are meant.

mod field;
mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;

/// Requirements one selector may hold; more is no selector a person or controller writes.
pub const MAX_REQUIREMENTS: usize = 64;
