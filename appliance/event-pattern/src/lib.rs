//! Quamina's pattern language, in which Tinkerbell's rule sets select machines: matches a pattern
//! against a JSON document.
//!
//! A pattern is a JSON object whose leaves are arrays of allowed values: `{"bios": {"vendor":
//! ["Intel", {"prefix": "Amer"}]}}`. A document matches if all fields of the pattern match. Fields
//! below one array of the document must match in the same element.
//!
//! Never: I/O, a clock, a panic or unbounded work because of its input.
//!
//! The crate `quamina` 0.7 is not used: of the 9,989 patterns of `tests/peers`, it differs from
//! Quamina in 157 (61 are refused or matched wrongly), and this crate in none.
//!
//! Enter at [`Pattern::parse`], [`Event::new`] and [`Pattern::fits`].

mod event;
mod glob;
mod json;
mod parse;
mod regexp;
mod value;

pub use event::Event;
pub use parse::Pattern;

/// Maximum length of a pattern, in bytes.
pub const PATTERN_BYTES: usize = 16 << 10;
/// Maximum number of fields of one pattern.
pub const FIELDS_MAX: usize = 128;
/// Maximum number of allowed values of one field.
pub const VALUES_MAX: usize = 256;
/// Maximum number of leaves of a document.
pub const LEAVES_MAX: usize = 16 << 10;
/// Maximum number of leaf comparisons for one match; then [`Error::Costly`].
pub const STEPS_MAX: usize = 4 << 20;
/// Maximum memory of one compiled regular expression, in bytes.
const REGEXP_BYTES: usize = 1 << 20;
/// Maximum count in braces of a regular expression.
const COUNT_MAX: u32 = 99;
/// Maximum nesting of parentheses in a regular expression.
const GROUPS_MAX: usize = 32;

/// Reason why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The pattern is longer than [`PATTERN_BYTES`].
    #[error("the pattern is longer than {PATTERN_BYTES} bytes")]
    Long,
    /// The text is not valid JSON, or not an object.
    #[error("the pattern is not a JSON object: {0}")]
    Json(String),
    /// The value of a field is neither an object nor an array.
    #[error("{0:?}: expected an array of allowed values such as [\"…\"], found {1}")]
    Leaf(String, &'static str),
    /// An array contains an array.
    #[error("{0:?}: an array within an array is not allowed")]
    Nested(String),
    /// The pattern has more than the given number of the named items.
    #[error("the pattern has more than {0} {1}")]
    Many(usize, &'static str),
    /// The kind of an extended pattern, such as `prefix`, is unknown.
    #[error("{0:?}: {1:?} is not a known kind of pattern")]
    Kind(String, String),
    /// An extended pattern does not have exactly one member.
    #[error("{0:?}: expected an object with one kind of pattern, found {1} members")]
    Members(String, usize),
    /// The value of an extended pattern has the wrong type or form.
    #[error("{path:?}: {kind} expects {want}")]
    Value {
        /// Path of the field.
        path: String,
        /// Kind of the extended pattern.
        kind: &'static str,
        /// Value that the kind expects.
        want: &'static str,
    },
    /// An extended pattern that must be the only value of its field stands beside other values.
    #[error("{0:?}: {1} cannot be combined with other values")]
    Alone(String, &'static str),
    /// A regular expression is invalid or not supported; the second text is the reason.
    #[error("{0:?}: the regular expression is not valid: {1}")]
    Regexp(String, String),
    /// The document has more than [`LEAVES_MAX`] leaves.
    #[error("the document has more than {LEAVES_MAX} values")]
    Large,
    /// The match needs more than [`STEPS_MAX`] comparisons.
    #[error("the pattern needs more than {STEPS_MAX} comparisons with the document")]
    Costly,
}

#[cfg(test)]
mod tests;
