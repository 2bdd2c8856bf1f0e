//! Total size of the objects of each kind.

use std::collections::BTreeMap;

use redb::{ReadableDatabase as _, ReadableTable as _};

use crate::error::{damaged, storage};
use crate::tables::OBJECTS;
use crate::{Error, Key, Store};

/// Number and total size of the objects of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Size {
    /// Kind of the objects, as in [`Key::resource`].
    pub resource: String,
    /// Number of stored objects.
    pub objects: u64,
    /// Total bytes of their keys and values on disk.
    pub bytes: u64,
}

impl Store {
    /// Returns the total size of the objects of each kind, the largest first. Blocks, because it
    /// reads the whole store; decrypts no value.
    ///
    /// # Errors
    /// The disk fails.
    pub fn sizes(&self) -> Result<Vec<Size>, Error> {
        let txn = self.shared().db.begin_read().map_err(storage("read"))?;
        let table = txn.open_table(OBJECTS).map_err(storage("read"))?;
        let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for row in table.iter().map_err(storage("read"))? {
            let (key, value) = row.map_err(storage("read"))?;
            let bytes = key.value().len() + value.value().len();
            let key =
                Key::decode(key.value()).ok_or_else(|| damaged("an object without a name"))?;
            let (objects, sum) = found.entry(key.resource).or_default();
            *objects += 1;
            *sum += bytes as u64;
        }
        let sizes = found.into_iter();
        let sizes = sizes.map(|(resource, (objects, bytes))| Size { resource, objects, bytes });
        let mut sizes: Vec<Size> = sizes.collect();
        sizes.sort_by_key(|size| std::cmp::Reverse(size.bytes));
        Ok(sizes)
    }
}
