//! State of the store at one revision, readable while writes continue. Also imports objects into
//! another store.

use std::ops::ControlFlow;

use redb::{ReadTransaction, ReadableDatabase as _, ReadableTable as _};

use super::snapshot::RESTORE_LEAP;
use crate::error::{damaged, storage};
use crate::tables::{META_REVISION, OBJECTS, decode_object, meta};
use crate::{Error, Key, Store, Stored};

/// State of the store at one revision. The file cannot reuse changed pages before this value is
/// dropped, so drop it soon.
pub struct Frozen {
    store: Store,
    txn: ReadTransaction,
    revision: u64,
}

impl Store {
    /// Returns the current state of the store; later writes do not change it.
    ///
    /// # Errors
    /// The disk fails.
    pub fn freeze(&self) -> Result<Frozen, Error> {
        let txn = self.shared().db.begin_read().map_err(storage("read"))?;
        let revision = meta(&txn, META_REVISION)?;
        Ok(Frozen { store: self.clone(), txn, revision })
    }

    /// Imports objects of another store, whose last revision was `revision`: all of them or none.
    /// First raises this store's revision to `revision` + [`RESTORE_LEAP`], above every revision
    /// that the other store can have used since. Repeated calls raise it only once.
    ///
    /// # Errors
    /// The errors of [`Store::write`]; the objects of one call exceed [`crate::MAX_TXN_BYTES`].
    pub async fn adopt(&self, revision: u64, objects: Vec<(Key, Vec<u8>)>) -> Result<(), Error> {
        let adopted = self.write(move |txn| {
            txn.leap(revision.saturating_add(RESTORE_LEAP));
            for (key, value) in objects {
                txn.put(key, value);
            }
            Ok::<(), Error>(())
        });
        adopted.await?
    }
}

impl Frozen {
    /// Returns the last revision of the frozen state.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Calls `visit` with every object in key order, until it returns `Break`. Blocks no writer.
    ///
    /// # Errors
    /// The disk fails, or a value cannot be decrypted.
    pub fn each(&self, mut visit: impl FnMut(Key, Stored) -> ControlFlow<()>) -> Result<(), Error> {
        let table = self.txn.open_table(OBJECTS).map_err(storage("read"))?;
        for row in table.iter().map_err(storage("read"))? {
            let (key, value) = row.map_err(storage("read"))?;
            let key =
                Key::decode(key.value()).ok_or_else(|| damaged("an object without a name"))?;
            let stored = decode_object(&key, value.value(), &self.store.shared().vault)?;
            if visit(key, stored).is_break() {
                break;
            }
        }
        Ok(())
    }
}
