//! Storage of the leases in a file.
//!
//! The file is a redb database with one table, `leases`, format 1. Keys and values are bytes,
//! numbers big-endian:
//!
//! ```text
//! key   4 bytes   the IPv4 address
//! value 23 bytes  0..6    the owner's hardware address
//!                 6       1 bound, 2 released, 3 declined
//!                 7..15   end of the lease, in seconds of the lease clock
//!                 15..23  time of the owner's last packet, likewise
//!
//! key   0 bytes   the format
//! value 2 bytes   its number
//! ```
//!
//! A second table, `reserved`, has the leases that came from records. Older releases neither read
//! nor write this table, so a row counts only while table `leases` has the same owner:
//!
//! ```text
//! key   4 bytes   the IPv4 address
//! value 6 bytes   the owner's hardware address
//! ```
//!
//! A file with a higher format number is refused, and so is a file with values that no release
//! writes: the address of a lease that cannot be read might be assigned twice.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use redb::{
    Builder, Database, Durability, ReadableDatabase as _, ReadableTable as _, TableDefinition,
};
use stdx::MacAddr;

use crate::error::Error;
use crate::leases::{Change, Lease, LeaseState, LeaseStore};

const LEASES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("leases");
const RESERVED: TableDefinition<&[u8], &[u8]> = TableDefinition::new("reserved");
const FORMAT: u16 = 1;
const FORMAT_KEY: &[u8] = &[];
/// redb's page cache in bytes, for about ten thousand leases. Each page is read once, at start.
const CACHE_BYTES: usize = 2 << 20;

/// Store of leases that survives a restart and a power cut.
#[derive(Debug)]
pub struct LeaseFile {
    database: Database,
    path: PathBuf,
}

/// Reason why a lease file cannot be used.
#[derive(Debug, thiserror::Error)]
enum Damage {
    #[error("{} has the format {found}; this release knows formats up to {FORMAT}", path.display())]
    Newer { path: PathBuf, found: u16 },
    #[error("{} is damaged: {what}", path.display())]
    Row { path: PathBuf, what: &'static str },
}

impl LeaseFile {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// The file cannot be opened, is in use, is not a lease file, is damaged, or is of a newer
    /// release.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let was_there = path.exists();
        let mut database =
            Builder::new().set_cache_size(CACHE_BYTES).create(path).map_err(failed("open"))?;
        if was_there {
            // redb does not verify pages when it reads them. Pages that a failing disk changed must
            // be found now.
            database.check_integrity().map_err(failed("open"))?;
        }
        let file = Self { database, path: path.to_owned() };
        file.prepare()?;
        Ok(file)
    }

    fn prepare(&self) -> Result<(), Error> {
        let mut txn = self.database.begin_write().map_err(failed("open"))?;
        // The first lease makes the format durable; before, the file has no lease to misread.
        txn.set_durability(Durability::None).map_err(failed("open"))?;
        {
            let mut table = txn.open_table(LEASES).map_err(failed("open"))?;
            let format = table.get(FORMAT_KEY).map_err(failed("open"))?;
            let format = format.map(|value| value.value().to_vec());
            match format.as_deref().map(<[u8; 2]>::try_from) {
                None if table.first().map_err(failed("open"))?.is_none() => {
                    table
                        .insert(FORMAT_KEY, FORMAT.to_be_bytes().as_slice())
                        .map_err(failed("open"))?;
                }
                Some(Ok(number)) if u16::from_be_bytes(number) == FORMAT => {}
                Some(Ok(number)) if u16::from_be_bytes(number) > FORMAT => {
                    let (path, found) = (self.path.clone(), u16::from_be_bytes(number));
                    return Err(failed("open")(Damage::Newer { path, found }));
                }
                _ => return Err(self.damaged("its format is not a number")),
            }
            txn.open_table(RESERVED).map_err(failed("open"))?;
        }
        txn.commit().map_err(failed("open"))
    }

    fn damaged(&self, what: &'static str) -> Error {
        failed("read")(Damage::Row { path: self.path.clone(), what })
    }
}

impl LeaseStore for LeaseFile {
    fn load(&self) -> Result<Vec<Lease>, Error> {
        let txn = self.database.begin_read().map_err(failed("read"))?;
        let table = txn.open_table(LEASES).map_err(failed("read"))?;
        let reserved = txn.open_table(RESERVED).map_err(failed("read"))?;
        let mut leases = Vec::new();
        for row in table.iter().map_err(failed("read"))? {
            let (key, value) = row.map_err(failed("read"))?;
            if key.value() == FORMAT_KEY {
                continue;
            }
            let mut lease = read(key.value(), value.value()).map_err(|what| self.damaged(what))?;
            let owner = reserved.get(key.value()).map_err(failed("read"))?;
            lease.reserved = owner.is_some_and(|owner| owner.value() == lease.mac.0);
            leases.push(lease);
        }
        Ok(leases)
    }

    fn commit(&self, changes: &[Change]) -> Result<(), Error> {
        let txn = self.database.begin_write().map_err(failed("write"))?;
        {
            let mut table = txn.open_table(LEASES).map_err(failed("write"))?;
            let mut reserved = txn.open_table(RESERVED).map_err(failed("write"))?;
            for change in changes {
                let (key, lease) = match change {
                    Change::Put(lease) => (lease.address.octets(), Some(lease)),
                    Change::Remove(address) => (address.octets(), None),
                };
                let key = key.as_slice();
                match lease {
                    Some(lease) => {
                        let Some(value) = write(lease) else { continue };
                        table.insert(key, value.as_slice()).map(drop)
                    }
                    None => table.remove(key).map(drop),
                }
                .map_err(failed("write"))?;
                match lease.filter(|lease| lease.reserved) {
                    Some(lease) => reserved.insert(key, lease.mac.0.as_slice()).map(drop),
                    None => reserved.remove(key).map(drop),
                }
                .map_err(failed("write"))?;
            }
        }
        txn.commit().map_err(failed("write"))
    }
}

fn failed<E>(attempt: &'static str) -> impl Fn(E) -> Error
where
    E: std::error::Error + Send + Sync + 'static,
{
    move |source| Error::Leases { attempt, source: Box::new(source) }
}

/// Encodes a lease as a value of the table; `None` for an offer, which is not stored.
fn write(lease: &Lease) -> Option<[u8; 23]> {
    let state = match lease.state {
        LeaseState::Offered => return None,
        LeaseState::Bound => 1,
        LeaseState::Released => 2,
        LeaseState::Declined => 3,
    };
    let mut value = [0; 23];
    value[..6].copy_from_slice(&lease.mac.0);
    value[6] = state;
    value[7..15].copy_from_slice(&lease.expires.to_be_bytes());
    value[15..].copy_from_slice(&lease.last_seen.to_be_bytes());
    Some(value)
}

fn read(key: &[u8], value: &[u8]) -> Result<Lease, &'static str> {
    let address: [u8; 4] = key.try_into().map_err(|_| "a key is not an address")?;
    let value: &[u8; 23] = value.try_into().map_err(|_| "a lease has another length")?;
    let (mac, rest) = value.split_first_chunk::<6>().ok_or("a lease has no owner")?;
    let (state, rest) = rest.split_first().ok_or("a lease has no state")?;
    let (expires, last_seen) = rest.split_first_chunk::<8>().ok_or("a lease has no end")?;
    let last_seen: [u8; 8] = last_seen.try_into().map_err(|_| "a lease has no time")?;
    let state = match state {
        1 => LeaseState::Bound,
        2 => LeaseState::Released,
        3 => LeaseState::Declined,
        _ => return Err("a lease has no known state"),
    };
    Ok(Lease {
        address: Ipv4Addr::from(address),
        mac: MacAddr(*mac),
        state,
        expires: u64::from_be_bytes(*expires),
        last_seen: u64::from_be_bytes(last_seen),
        reserved: false,
    })
}

#[cfg(test)]
mod tests;
