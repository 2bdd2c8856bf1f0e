//! Text forms of values as in Go programs: clients of Kubernetes search for these texts.
//!
//! Never parses Go, never prints a value other than JSON's (`template` has its own functions, with
//! limits). Enter at [`quoted`], [`plain`], [`json()`] and [`field_value`]; [`json_iterator`] is
//! the other JSON encoder of Kubernetes.

mod field_error;
mod fmt;
mod json;
pub mod json_iterator;

pub use field_error::{field_value, listed_value};
pub use fmt::{float, is_printable, literal, number, plain, quoted, type_name};
pub use json::{json, json_float, json_kind, push_json_string};
