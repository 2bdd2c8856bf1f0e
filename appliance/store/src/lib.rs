//! The box's object store: opaque values under (resource, namespace, name) with strictly increasing
//! revisions, durable before they are acknowledged, and a change log that can be watched from any
//! revision that is still in the log.
//!
//! Never: parses a value, knows a kind, holds a write transaction across an await (write closures
//! are synchronous by type), acknowledges data that is not on disk, lets a slow reader delay a
//! writer.
//!
//! Enter at [`Store::open`]; [`Store::write`] → `group` (the writer thread) → `tables` (the format
//! on disk, drawn byte by byte; `vault` seals secrets) → `hub` → [`Watch::next`]. Tests of other
//! crates use [`fake`].
//! Enter at [`Store::open`]; [`Store::write`] → `write::group` (the writer thread) → `tables` (the
//! format on disk, drawn byte by byte; `vault` seals secrets) → `hub` → [`Watch::next`].

mod change;
mod error;
mod file;
mod free_space;
mod hub;
mod key;
mod options;
mod read;
mod shared;
mod store;
mod tables;
mod transaction;
mod vault;
mod write;

#[cfg(test)]
mod tests;

pub use change::{Change, ChangeKind, Stored};
pub use error::Error;
pub use file::aside::{NewerStore, forget_copy, returned};
pub use free_space::{FreeSpace, SystemVolume, Volume, fake};
pub use key::Key;
pub use options::Options;
pub use read::{
    CheckReport, Frozen, MAX_UNDONE_BYTES, RESTORE_LEAP, Size, Walk, WalkResult, Watch,
};
pub use store::{Stats, Store};
pub use vault::{SEALING_KEY_BYTES, SealingKey};
pub use write::{MAX_TXN_BYTES, MAX_VALUE_BYTES, Txn};
