//! Label and field selectors, which select objects of a list or watch.

mod field;
mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;

/// Maximum requirements in one selector; real selectors have far fewer.
pub const MAX_REQUIREMENTS: usize = 64;
