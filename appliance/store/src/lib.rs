//! The box's object store: opaque values under (resource, namespace, name) with strictly increasing
//! revisions, durable before they are acknowledged, and a change log that can be watched from any
//! revision that it still holds.
//!
//! Never: parses a value, knows a kind, holds a write transaction across an await (write closures
//! are synchronous by type), acknowledges data that is not on disk, lets a slow reader delay a
//! writer.
//!
//! Enter at [`Store::open`]; [`Store::write`] → `group` (the writer thread) → `tables` (the format
//! on disk, drawn byte by byte; `vault` seals secrets) → `hub` → [`Watch::next`].

mod ages;
mod aside;
mod change;
mod check;
mod error;
mod frozen;
mod group;
mod hub;
mod key;
mod migrate;
mod open;
mod room;
mod sizes;
mod snapshot;
mod store;
mod tables;
mod txn;
mod vault;
mod walk;
mod watch;

#[cfg(test)]
mod tests;

pub use aside::{Returned, forget_copy, returned};
pub use change::{Change, ChangeKind, Stored};
pub use check::Checked;
pub use error::Error;
pub use frozen::Frozen;
pub use key::Key;
pub use open::Options;
pub use room::{Room, SystemVolume, Volume};
pub use sizes::Size;
pub use snapshot::RESTORE_LEAP;
pub use store::{Stats, Store};
pub use txn::{MAX_TXN_BYTES, MAX_VALUE_BYTES, Txn};
pub use vault::{SEALING_KEY_BYTES, SealingKey};
pub use walk::{MAX_UNDONE_BYTES, Walk, Walked};
pub use watch::Watch;
