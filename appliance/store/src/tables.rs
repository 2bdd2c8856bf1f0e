//! Format of the file, version 2: three redb tables. Integers are big-endian except redb's own
//! `u64` keys and values.
//!
//! ```text
//! objects      bytes → bytes      what is
//!   key        resource 00 namespace 00 name              (see `key`)
//!   value      0        8
//!              ┌────────┬──────────────────┐
//!              │revision│ blob …           │
//!              └────────┴──────────────────┘
//!
//! changelog    u64 → bytes        what happened; key = revision, without gaps
//!   value      0    1        9       13          13+k
//!              ┌────┬────────┬───────┬───────────┬─ … ───────────────────────────────────────┐
//!              │kind│time    │k      │object key │ body                                      │
//!              └────┴────────┴───────┴───────────┴─ … ───────────────────────────────────────┘
//!   kind 1     created    body = blob
//!   kind 2     replaced   body = previous revision (8) · p (4) · previous blob (p) · blob
//!   kind 3     deleted    body = previous revision (8) · p (4) · previous blob (p)
//!   time       milliseconds since 1970, UTC, of the commit, by the box's clock; ages the log only
//!
//! meta         text → u64
//!   format     version of this layout
//!   revision   the highest revision ever given out: the last row of the log, if it has rows
//!   floor      the log holds every revision above this one, and none below or at it
//!   log-bytes  sum of the lengths of the log's values
//!   sealed-by  fingerprint of the key that sealed values are sealed with
//! ```
//!
//! A blob is a value after one byte that says if the value is encrypted (see `vault`). Version 1
//! stored the values without this byte; `migrate` converts them.
//!
//! The three tables change in one transaction, so they agree after any power cut: `revision` never
//! decreases, and the changes of the log from `floor` on end in the state of `objects`.

use redb::{ReadTransaction, ReadableTable, TableDefinition};

use crate::error::{damaged, storage};
use crate::vault::Vault;
use crate::{Change, ChangeKind, Error, Key, Stored};

/// Version of the format that this module describes.
pub(crate) const FORMAT: u64 = 2;

pub(crate) const OBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("objects");
pub(crate) const CHANGELOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("changelog");
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

pub(crate) const META_FORMAT: &str = "format";
pub(crate) const META_REVISION: &str = "revision";
pub(crate) const META_FLOOR: &str = "floor";
pub(crate) const META_LOG_BYTES: &str = "log-bytes";
pub(crate) const META_SEALED_BY: &str = "sealed-by";

const CREATED: u8 = 1;
const REPLACED: u8 = 2;
const DELETED: u8 = 3;

/// The `objects` table in a read or a write transaction.
pub(crate) trait Objects {
    /// Returns the object with `key`; `None` if it does not exist.
    fn object(&self, key: &Key) -> Result<Option<Stored>, Error>;
    /// Returns every object of `resource`, or of only its `namespace`, in key order.
    fn objects(&self, resource: &str, namespace: Option<&str>)
    -> Result<Vec<(Key, Stored)>, Error>;
    /// Calls `each` with key and revision of every object of a namespace, without decrypting
    /// values.
    fn revisions(
        &self,
        resource: &str,
        namespace: &str,
        each: &mut dyn FnMut(&[u8], u64),
    ) -> Result<(), Error>;
    /// Returns every object of the store, in key order.
    fn everything(&self) -> Result<Vec<(Key, Stored)>, Error>;
}

/// The `objects` table, with the vault that decrypts its values.
pub(crate) struct Opened<'a, T> {
    pub table: &'a T,
    pub vault: &'a Vault,
}

impl<T> Opened<'_, T> {
    fn read(
        &self,
        rows: redb::Range<'_, &'static [u8], &'static [u8]>,
    ) -> Result<Vec<(Key, Stored)>, Error> {
        rows.map(|row| {
            let (key, value) = row.map_err(storage("read"))?;
            let key =
                Key::decode(key.value()).ok_or_else(|| damaged("an object without a name"))?;
            let stored = decode_object(&key, value.value(), self.vault)?;
            Ok((key, stored))
        })
        .collect()
    }
}

impl<T: ReadableTable<&'static [u8], &'static [u8]>> Objects for Opened<'_, T> {
    fn object(&self, key: &Key) -> Result<Option<Stored>, Error> {
        let row = self.table.get(key.encode().as_slice()).map_err(storage("read"))?;
        row.map(|row| decode_object(key, row.value(), self.vault)).transpose()
    }

    fn objects(
        &self,
        resource: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<(Key, Stored)>, Error> {
        let (from, to) = crate::key::bounds(resource, namespace);
        self.read(self.table.range(from.as_slice()..to.as_slice()).map_err(storage("read"))?)
    }

    fn revisions(
        &self,
        resource: &str,
        namespace: &str,
        each: &mut dyn FnMut(&[u8], u64),
    ) -> Result<(), Error> {
        let (from, to) = crate::key::bounds(resource, Some(namespace));
        for row in self.table.range(from.as_slice()..to.as_slice()).map_err(storage("read"))? {
            let (key, value) = row.map_err(storage("read"))?;
            each(key.value(), split_revision(value.value())?.0);
        }
        Ok(())
    }

    fn everything(&self) -> Result<Vec<(Key, Stored)>, Error> {
        self.read(self.table.iter().map_err(storage("read"))?)
    }
}

/// Returns a number of the `meta` table in the snapshot of `txn`; zero if it was never written.
pub(crate) fn meta(txn: &ReadTransaction, name: &str) -> Result<u64, Error> {
    let table = txn.open_table(META).map_err(storage("read"))?;
    Ok(table.get(name).map_err(storage("read"))?.map_or(0, |value| value.value()))
}

/// Encodes a value for the `objects` table.
pub(crate) fn encode_object(key: &Key, stored: &Stored, vault: &Vault) -> Result<Vec<u8>, Error> {
    let mut bytes = stored.revision.to_be_bytes().to_vec();
    bytes.extend(vault.close(key, stored.revision, &stored.value)?);
    Ok(bytes)
}

/// Decodes a value of the `objects` table.
pub(crate) fn decode_object(key: &Key, bytes: &[u8], vault: &Vault) -> Result<Stored, Error> {
    let (revision, blob) = split_revision(bytes)?;
    Ok(Stored { revision, value: vault.open(key, revision, blob)? })
}

fn split_revision(bytes: &[u8]) -> Result<Revised<'_>, Error> {
    let (revision, blob) =
        bytes.split_first_chunk().ok_or_else(|| damaged("an object without a revision"))?;
    Ok((u64::from_be_bytes(*revision), blob))
}

/// Encodes a change for the log; `millis` is the commit time in milliseconds since 1970.
pub(crate) fn encode_change(change: &Change, millis: u64, vault: &Vault) -> Result<Vec<u8>, Error> {
    let kind = match &change.kind {
        ChangeKind::Put { previous: None, .. } => CREATED,
        ChangeKind::Put { previous: Some(_), .. } => REPLACED,
        ChangeKind::Delete { .. } => DELETED,
    };
    let mut bytes = Vec::with_capacity(64 + change.weight());
    bytes.push(kind);
    bytes.extend(millis.to_be_bytes());
    put_sized(&mut bytes, &change.key.encode());
    if let Some(previous) = change.previous() {
        bytes.extend(previous.revision.to_be_bytes());
        put_sized(&mut bytes, &vault.close(&change.key, previous.revision, &previous.value)?);
    }
    if let ChangeKind::Put { value, .. } = &change.kind {
        bytes.extend(vault.close(&change.key, change.revision, value)?);
    }
    Ok(bytes)
}

/// Decodes the change of `revision` from the log.
pub(crate) fn decode_change(revision: u64, bytes: &[u8], vault: &Vault) -> Result<Change, Error> {
    let unreadable = || damaged(format!("the log's row of revision {revision} cannot be read"));
    let row = parse_change(bytes).ok_or_else(unreadable)?;
    let key = Key::decode(row.key).ok_or_else(unreadable)?;
    let previous = row.previous.map(|(revision, blob)| {
        let value = vault.open(&key, revision, blob)?;
        Ok::<_, Error>(Stored { revision, value })
    });
    let previous = previous.transpose()?;
    let kind = match (row.current, previous) {
        (Some(blob), previous) => {
            ChangeKind::Put { value: vault.open(&key, revision, blob)?, previous }
        }
        (None, Some(previous)) => ChangeKind::Delete { previous },
        (None, None) => return Err(unreadable()),
    };
    Ok(Change { revision, key, kind })
}

/// Returns the commit time of the change in `bytes`, in milliseconds since 1970.
#[cfg(test)]
pub(crate) fn change_millis(bytes: &[u8]) -> Option<u64> {
    bytes.get(1..)?.first_chunk().map(|millis| u64::from_be_bytes(*millis))
}

/// Returns the encoded key of the object that the change in `bytes` changed.
pub(crate) fn change_key(bytes: &[u8]) -> Option<&[u8]> {
    take_sized(bytes.get(9..)?).map(|(key, _)| key)
}

/// Revision that wrote a value, and the encoded value.
type Revised<'a> = (u64, &'a [u8]);

/// Parts of a row of the log.
pub(crate) struct ChangeRow<'a> {
    pub kind: u8,
    pub millis: [u8; 8],
    pub key: &'a [u8],
    /// Revision and blob of the replaced or deleted value; `None` for a new object.
    pub previous: Option<Revised<'a>>,
    /// Blob of the new value; `None` for a deletion.
    pub current: Option<&'a [u8]>,
}

/// Splits a row of the log into its parts; `None` if the row is invalid.
pub(crate) fn parse_change(bytes: &[u8]) -> Option<ChangeRow<'_>> {
    let (&kind, rest) = bytes.split_first()?;
    let (&millis, rest) = rest.split_first_chunk()?;
    let (key, rest) = take_sized(rest)?;
    let (previous, current) = match kind {
        CREATED => (None, Some(rest)),
        REPLACED => {
            let (previous, rest) = take_previous(rest)?;
            (Some(previous), Some(rest))
        }
        DELETED => match take_previous(rest)? {
            (previous, []) => (Some(previous), None),
            _ => return None,
        },
        _ => return None,
    };
    Some(ChangeRow { kind, millis, key, previous, current })
}

pub(crate) fn put_sized(bytes: &mut Vec<u8>, part: &[u8]) {
    let length = u32::try_from(part.len()).expect("values and names are limited far below 4 GiB");
    bytes.extend(length.to_be_bytes());
    bytes.extend(part);
}

fn take_sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

fn take_previous(bytes: &[u8]) -> Option<(Revised<'_>, &[u8])> {
    let (revision, rest) = bytes.split_first_chunk()?;
    let (blob, rest) = take_sized(rest)?;
    Some(((u64::from_be_bytes(*revision), blob), rest))
}
