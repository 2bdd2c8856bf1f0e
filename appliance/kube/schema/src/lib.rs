//! Structural schemas: what a kind's fields are, and what follows from it.
//!
//! A CustomResourceDefinition's `openAPIV3Schema` is parsed once ([`Schema::parse`]); the tree then
//! validates, prunes and defaults objects in the words of apiextensions-apiserver, and tells
//! OpenAPI, structured merge and tables what they need to know ([`Node`]).
//!
//! Never: does I/O, knows a kind, reads a clock. Everything is a pure function of its arguments,
//! bounded by the limits named where they stand, so that it may be fed foreign bytes.
//!
//! Enter at [`Schema`].

mod admission;
mod combine;
mod correlate;
pub mod crd;
mod default;
mod fault;
mod field_error;
mod field_path;
mod format;
mod keyword;
mod list_type;
pub mod names;
mod node;
mod number;
mod object_meta;
mod parse;
mod pattern;
mod prune;
mod rules;
mod structural;
mod superset;
mod validate;

pub use admission::check_structural;
pub use field_error::{FieldError, Mistake};
pub use node::{Additional, ListType, Node, Rule, Schema};
pub use number::canonical_numbers;
pub use object_meta::{metadata_misfit, prune_metadata};
pub use parse::{MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES, SchemaError};
pub use superset::superset;
pub use validate::Findings;
