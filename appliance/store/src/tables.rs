//! The format on disk, version 1: three redb tables. Integers are big-endian except redb's own
//! `u64` keys and values.
//!
//! ```text
//! objects      bytes → bytes      what is
//!   key        resource 00 namespace 00 name              (see `key`)
//!   value      0        8
//!              ┌────────┬──────────────────┐
//!              │revision│ value …          │
//!              └────────┴──────────────────┘
//!
//! changelog    u64 → bytes        what happened; key = revision, without gaps
//!   value      0    1        9       13          13+k
//!              ┌────┬────────┬───────┬───────────┬─ … ───────────────────────────────────────┐
//!              │kind│time    │k      │object key │ body                                      │
//!              └────┴────────┴───────┴───────────┴─ … ───────────────────────────────────────┘
//!   kind 1     created    body = value
//!   kind 2     replaced   body = previous revision (8) · p (4) · previous value (p) · value
//!   kind 3     deleted    body = previous revision (8) · p (4) · previous value (p)
//!   time       milliseconds since 1970, UTC, of the commit, by the box's clock; ages the log only
//!
//! meta         text → u64
//!   format     version of this layout
//!   revision   the highest revision ever given out: the last row of the log, if it has rows
//!   floor      the log holds every revision above this one, and none below or at it
//!   log-bytes  sum of the lengths of the log's values
//! ```
//!
//! The three change in one transaction, so they agree after any power cut: `revision` never goes
//! back, and replaying the log from `floor` ends in `objects`.

use std::sync::Arc;

use redb::{ReadTransaction, ReadableTable, TableDefinition};

use crate::error::{damaged, storage};
use crate::{Change, ChangeKind, Error, Key, Stored};

/// The layout this module draws.
pub(crate) const FORMAT: u64 = 1;

pub(crate) const OBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("objects");
pub(crate) const CHANGELOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("changelog");
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

pub(crate) const META_FORMAT: &str = "format";
pub(crate) const META_REVISION: &str = "revision";
pub(crate) const META_FLOOR: &str = "floor";
pub(crate) const META_LOG_BYTES: &str = "log-bytes";

const CREATED: u8 = 1;
const REPLACED: u8 = 2;
const DELETED: u8 = 3;

/// The objects table, seen from a read or a write transaction alike.
pub(crate) trait Objects {
    /// One object.
    fn object(&self, key: &Key) -> Result<Option<Stored>, Error>;
    /// Every object of a resource, or of one namespace of it, in key order.
    fn objects(&self, resource: &str, namespace: Option<&str>)
    -> Result<Vec<(Key, Stored)>, Error>;
}

impl<T: ReadableTable<&'static [u8], &'static [u8]>> Objects for T {
    fn object(&self, key: &Key) -> Result<Option<Stored>, Error> {
        let row = self.get(key.encode().as_slice()).map_err(storage("read"))?;
        row.map(|row| decode_object(row.value())).transpose()
    }

    fn objects(
        &self,
        resource: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<(Key, Stored)>, Error> {
        let (from, to) = crate::key::bounds(resource, namespace);
        let rows = self.range(from.as_slice()..to.as_slice()).map_err(storage("read"))?;
        rows.map(|row| {
            let (key, value) = row.map_err(storage("read"))?;
            let key =
                Key::decode(key.value()).ok_or_else(|| damaged("an object without a name"))?;
            Ok((key, decode_object(value.value())?))
        })
        .collect()
    }
}

/// A number of the meta table, in the snapshot of `txn`; zero when it was never written.
pub(crate) fn meta(txn: &ReadTransaction, name: &str) -> Result<u64, Error> {
    let table = txn.open_table(META).map_err(storage("read"))?;
    Ok(table.get(name).map_err(storage("read"))?.map_or(0, |value| value.value()))
}

/// A value as the objects table holds it.
pub(crate) fn encode_object(stored: &Stored) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + stored.value.len());
    bytes.extend(stored.revision.to_be_bytes());
    bytes.extend(&*stored.value);
    bytes
}

/// A value from the objects table.
pub(crate) fn decode_object(bytes: &[u8]) -> Result<Stored, Error> {
    let (revision, value) =
        bytes.split_first_chunk().ok_or_else(|| damaged("an object without a revision"))?;
    Ok(Stored { revision: u64::from_be_bytes(*revision), value: Arc::from(value) })
}

/// A change as the log holds it.
pub(crate) fn encode_change(change: &Change, millis: u64) -> Vec<u8> {
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
        put_sized(&mut bytes, &previous.value);
    }
    if let ChangeKind::Put { value, .. } = &change.kind {
        bytes.extend(&**value);
    }
    bytes
}

/// The change of `revision`, from the log.
pub(crate) fn decode_change(revision: u64, bytes: &[u8]) -> Result<Change, Error> {
    parse_change(revision, bytes)
        .ok_or_else(|| damaged(format!("the log's row of revision {revision} cannot be read")))
}

/// When the change in `bytes` was committed, in milliseconds since 1970.
pub(crate) fn change_millis(bytes: &[u8]) -> Option<u64> {
    bytes.get(1..)?.first_chunk().map(|millis| u64::from_be_bytes(*millis))
}

fn parse_change(revision: u64, bytes: &[u8]) -> Option<Change> {
    let (kind, rest) = bytes.split_first()?;
    let (_millis, rest) = rest.split_first_chunk::<8>()?;
    let (key, rest) = take_sized(rest)?;
    let key = Key::decode(key)?;
    let kind = match *kind {
        CREATED => ChangeKind::Put { value: Arc::from(rest), previous: None },
        REPLACED => {
            let (previous, rest) = take_stored(rest)?;
            ChangeKind::Put { value: Arc::from(rest), previous: Some(previous) }
        }
        DELETED => match take_stored(rest)? {
            (previous, []) => ChangeKind::Delete { previous },
            _ => return None,
        },
        _ => return None,
    };
    Some(Change { revision, key, kind })
}

fn put_sized(bytes: &mut Vec<u8>, part: &[u8]) {
    let length = u32::try_from(part.len()).expect("values and names are limited far below 4 GiB");
    bytes.extend(length.to_be_bytes());
    bytes.extend(part);
}

fn take_sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

fn take_stored(bytes: &[u8]) -> Option<(Stored, &[u8])> {
    let (revision, rest) = bytes.split_first_chunk()?;
    let (value, rest) = take_sized(rest)?;
    Some((Stored { revision: u64::from_be_bytes(*revision), value: Arc::from(value) }, rest))
}
