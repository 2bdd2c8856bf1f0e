//! Structured merge: ownership of the fields of an object, and server-side apply.
//!
//! The rules are the same as in Kubernetes' server-side apply. Field paths, types and merging
//! follow `sigs.k8s.io/structured-merge-diff` (packages `fieldpath`, `typed`, `merge`). The entries
//! of `metadata.managedFields` follow `k8s.io/apimachinery` (`pkg/util/managedfields`). Objects are
//! [`serde_json::Value`]s; the time is an argument.
//!
//! Never does I/O, never depends on a particular kind, never reads a clock.
//!
//! Enter at [`FieldManager`], which a server calls on every write. A [`Schema`] defines how the
//! fields of a kind merge.

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

pub use conflict::{ApplyError, Conflict, Conflicts};
pub use field_manager::FieldManager;
pub use managers::{MAX_ENTRIES, MAX_UPDATE_MANAGERS, Managers, Operation, UnreadableManagers};
pub use openapi::Unconvertible;
pub use path::{Path, PathElement, UnreadableElement};
pub use schema::{Atom, Field, List, Map, Scalar, Schema, TypeId};
pub use set::{Set, UnreadableSet};
pub use typed::{Comparison, Mismatch, Mismatches, Typed};
pub use value::MAX_DEPTH;
