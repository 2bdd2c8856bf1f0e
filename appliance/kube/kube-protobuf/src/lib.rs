//! Kubernetes' protobuf bodies, to and from JSON values, and what the built-in types look like.
//!
//! The types are tables in `types/`, written by `tests/peers/protobuf-oracle` from Kubernetes' own:
//! field numbers, JSON names, which fields are left out when empty. Nothing of a kind is code here
//! but the few types whose JSON is not that of their fields ([`Kind`]).
//!
//! Never: does I/O, trusts a length, decides what a field is for.
//!
//! Enter at [`decode`] (a request's body), [`encode`] (an answer's) and [`catalogue`].

mod budget;
mod catalogue;
mod decode;
mod duration;
mod encode;
mod envelope;
mod error;
mod forms;
mod moment;
mod quantity;
mod wire;

pub use catalogue::{Catalogue, Field, Kind, Shape, Type, catalogue};
pub use envelope::{MEDIA_TYPE, decode, encode};
pub use error::Error;
pub use wire::{put_bytes, put_fixed, put_number};

/// Levels of messages within messages; Kubernetes' deepest type, a schema, is cut there too.
pub const MAX_DEPTH: usize = 64;
/// Levels of JSON in what comes out, raw JSON within messages included: what a JSON body may have.
pub const MAX_JSON_DEPTH: usize = 128;
/// JSON values one body may become. A message of two bytes can stand for an object of many fields,
/// so the bytes alone bound nothing.
pub const MAX_VALUES: usize = 1 << 18;
