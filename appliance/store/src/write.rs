//! Writes: the view of a write closure, and the thread that commits closures in groups.

pub mod ages;
pub mod group;
mod txn;

pub(crate) use txn::CommitSet;
pub use txn::{MAX_TXN_BYTES, MAX_VALUE_BYTES, Txn};
