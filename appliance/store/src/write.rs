//! Writes: the closure's view of the store, and the thread that commits groups of them.

pub mod ages;
pub mod group;
mod txn;

pub(crate) use txn::CommitSet;
pub use txn::{MAX_TXN_BYTES, MAX_VALUE_BYTES, Txn};
