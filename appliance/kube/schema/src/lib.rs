//! Structural schemas: the fields of a kind, with validation, pruning and defaults.
//!
//! A CustomResourceDefinition's `openAPIV3Schema` is parsed once ([`Schema::parse`]). The tree then
//! validates, prunes and defaults objects with the messages of apiextensions-apiserver. OpenAPI,
//! structured merge and tables read their data from it ([`Node`]).
//!
//! Never does I/O, never depends on a particular kind, never reads a clock. Every function is pure.
//! Limits on the input are constants next to the code that enforces them, so that untrusted bytes
//! are accepted.
//!
//! Enter at [`Schema`], the parsed form of a schema.

mod admission;
mod correlate;
pub mod crd;
mod default;
mod fault;
mod field_error;
mod field_path;
mod node;
mod object_meta;
mod parse;
mod prune;
mod rules;
mod schema;
mod superset;
mod text;
mod validate;

pub use admission::check_structural;
pub use field_error::{FieldError, Findings, Mistake};
pub use node::{Additional, ListType, Node, Rule};
pub use object_meta::{metadata_misfit, prune_metadata};
pub use parse::{MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES, SchemaError};
pub use schema::Schema;
pub use superset::superset;
pub use text::names;
pub use validate::canonical_numbers;
