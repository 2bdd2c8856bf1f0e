//! Durable write transactions, and the numbers of the meta table that they update.

use redb::{Database, Durability, WriteTransaction};

use crate::Error;
use crate::error::storage;

/// Numbers of the `meta` table, described in the module `tables`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Totals {
    pub revision: u64,
    pub floor: u64,
    pub log_bytes: u64,
}

/// Begins a durable write transaction with two-phase commit. The module `tables` describes its
/// invariants.
pub(crate) fn begin(db: &Database) -> Result<WriteTransaction, Error> {
    let mut txn = db.begin_write().map_err(storage("write to"))?;
    txn.set_durability(Durability::Immediate).map_err(storage("write to"))?;
    txn.set_two_phase_commit(true);
    Ok(txn)
}
