//! Patches of the Kubernetes API: JSON merge patch, JSON patch and strategic merge patch.
//!
//! Never: does I/O, uses more of a kind than the merge keys of Kubernetes' own, lets a short patch
//! copy or nest without a limit. Server-side apply is in `structured-merge`. Enter at [`Patch`].

mod error;
mod patch;
mod strategic;

pub use error::{PatchError, Reason};
pub use patch::{MAX_COPIED_BYTES, MAX_OPERATIONS, MAX_WORK, Operation, Patch};

/// Maximum nesting depth of a patched object. JSON parsers accept 128 levels, and a list adds
/// levels around the object.
pub const MAX_DEPTH: usize = 100;
