//! Structured merge: who owns which field of an object, and what an apply makes of it.
//!
//! The rules are those of Kubernetes' server-side apply: field paths, types and merging as in
//! `sigs.k8s.io/structured-merge-diff` (packages `fieldpath`, `typed`, `merge`), and the entries of
//! `metadata.managedFields` as in `k8s.io/apimachinery` (`pkg/util/managedfields`). Objects are
//! [`serde_json::Value`]s; the time is an argument.
//!
//! Never: does I/O, knows a kind, reads a clock.
//!
//! Enter at [`FieldManager`], which a server asks on every write; [`Schema`] says how a kind's
//! fields merge.

mod conflict;
mod field_manager;
mod last_applied;
mod managers;
mod openapi;
mod path;
mod schema;
mod set;
mod typed;
mod updater;
mod value;

pub use conflict::{Conflict, Conflicts};
pub use field_manager::{FieldManager, Refused};
pub use managers::{MAX_ENTRIES, MAX_UPDATE_MANAGERS, Managers, Operation, UnreadableManagers};
pub use openapi::Unconvertible;
pub use path::{Path, PathElement, UnreadableElement};
pub use schema::{Atom, Field, List, Map, Scalar, Schema, TypeId};
pub use set::{Set, UnreadableSet};
pub use typed::{Comparison, MAX_DEPTH, Mismatch, Mismatches, Typed};
