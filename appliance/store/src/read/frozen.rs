//! The store as it was at one moment, read at leisure while it goes on; and a store filled with
//! what was read so.

use std::ops::ControlFlow;

use redb::{ReadTransaction, ReadableDatabase as _, ReadableTable as _};

use super::snapshot::RESTORE_LEAP;
use crate::error::{damaged, storage};
use crate::tables::{META_REVISION, OBJECTS, decode_object, meta};
use crate::{Error, Key, Store, Stored};

/// Every object at one moment. Changed pages of the file are not reused before this value is
/// dropped, so do not keep it for long.
pub struct Frozen {
    store: Store,
    txn: ReadTransaction,
    revision: u64,
}

impl Store {
    /// The store as it is now.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn freeze(&self) -> Result<Frozen, Error> {
        let txn = self.shared().db.begin_read().map_err(storage("read"))?;
        let revision = meta(&txn, META_REVISION)?;
        Ok(Frozen { store: self.clone(), txn, revision })
    }

    /// Puts objects of another store, whose last revision was `revision`, into this one, all of
    /// them or none. Revisions go on above all that were given out there since ([`RESTORE_LEAP`]),
    /// so none comes again; that takes effect once, however many calls say the same.
    ///
    /// # Errors
    /// As [`Store::write`]; more than [`crate::MAX_TXN_BYTES`] in one call is too much.
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
    /// Last revision of the frozen state.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Shows `visit` every object in key order, until it breaks. Blocks; holds up no writer.
    ///
    /// # Errors
    /// When the disk fails, or a sealed value does not open.
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
