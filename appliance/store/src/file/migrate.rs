//! Migration of files from earlier releases to the layout of `tables`, in a new file: plain values
//! of the old file must not remain in its free pages.

use redb::{ReadTransaction, ReadableTable as _, WriteTransaction};

use crate::error::{damaged, storage};
use crate::tables::{
    CHANGELOG, FORMAT, META, META_FORMAT, META_LOG_BYTES, OBJECTS, parse_change, put_sized,
};
use crate::vault::Vault;
use crate::{Error, Key};

/// Migrates version 1 to 2: values become blobs, which the vault encrypts for its resources.
pub(crate) fn to_blobs(
    from: &ReadTransaction,
    to: &WriteTransaction,
    vault: &Vault,
) -> Result<(), Error> {
    let old = from.open_table(OBJECTS).map_err(storage("migrate"))?;
    let mut objects = to.open_table(OBJECTS).map_err(storage("migrate"))?;
    for row in old.iter().map_err(storage("migrate"))? {
        let (bytes, row) = row.map_err(storage("migrate"))?;
        let key = Key::decode(bytes.value()).ok_or_else(|| damaged("an object without a name"))?;
        let (revision, value) = row
            .value()
            .split_first_chunk::<8>()
            .ok_or_else(|| damaged("an object without a revision"))?;
        let blob = vault.close(&key, u64::from_be_bytes(*revision), value)?;
        let row = [revision.as_slice(), &blob].concat();
        objects.insert(bytes.value(), row.as_slice()).map_err(storage("migrate"))?;
    }
    let old = from.open_table(CHANGELOG).map_err(storage("migrate"))?;
    let mut log = to.open_table(CHANGELOG).map_err(storage("migrate"))?;
    let mut total = 0;
    for row in old.iter().map_err(storage("migrate"))? {
        let (revision, row) = row.map_err(storage("migrate"))?;
        let row = change(revision.value(), row.value(), vault)?;
        total += row.len() as u64;
        log.insert(revision.value(), row.as_slice()).map_err(storage("migrate"))?;
    }
    let old = from.open_table(META).map_err(storage("migrate"))?;
    let mut meta = to.open_table(META).map_err(storage("migrate"))?;
    for row in old.iter().map_err(storage("migrate"))? {
        let (name, value) = row.map_err(storage("migrate"))?;
        meta.insert(name.value(), value.value()).map_err(storage("migrate"))?;
    }
    meta.insert(META_LOG_BYTES, total).map_err(storage("migrate"))?;
    meta.insert(META_FORMAT, FORMAT).map_err(storage("migrate"))?;
    Ok(())
}

fn change(revision: u64, bytes: &[u8], vault: &Vault) -> Result<Vec<u8>, Error> {
    let unreadable = || damaged(format!("the log's row of revision {revision} cannot be read"));
    let row = parse_change(bytes).ok_or_else(unreadable)?;
    let key = Key::decode(row.key).ok_or_else(unreadable)?;
    let mut fresh = vec![row.kind];
    fresh.extend(row.millis);
    put_sized(&mut fresh, row.key);
    if let Some((revision, value)) = row.previous {
        fresh.extend(revision.to_be_bytes());
        put_sized(&mut fresh, &vault.close(&key, revision, value)?);
    }
    if let Some(value) = row.current {
        fresh.extend(vault.close(&key, revision, value)?);
    }
    Ok(fresh)
}
