//! Label and field selectors of lists and watches.

mod field;
mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;

/// Maximum requirements (`key=value` terms) in one selector; a longer selector gets 400.
pub const MAX_REQUIREMENTS: usize = 64;
