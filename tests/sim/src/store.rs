//! Lease store that survives a kill of the box: in memory, with the commit failures of a disk.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhcp::{Change, Error, Lease, LeaseStore};

/// Effect and result of the next commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The commit becomes durable and reports success.
    Done,
    /// The commit becomes durable and reports an error.
    DoneUnknown,
    /// The commit does not become durable, and reports an error.
    Failed,
    /// The commit does not become durable, but reports success.
    Lie,
}

/// A store whose commits can be made to fail.
#[derive(Debug)]
pub struct Store {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    leases: BTreeMap<Ipv4Addr, Lease>,
    fate: Fate,
}

impl Store {
    /// Returns an empty store.
    pub fn new() -> Self {
        Self { inner: Mutex::new(Inner { leases: BTreeMap::new(), fate: Fate::Done }) }
    }

    /// Sets the result of the next commit.
    pub fn set_fate(&self, fate: Fate) {
        self.inner().fate = fate;
    }

    /// Durable lease of an address.
    pub fn lease(&self, address: Ipv4Addr) -> Option<Lease> {
        self.inner().leases.get(&address).copied()
    }

    /// Number of addresses with a durable lease.
    pub fn len(&self) -> usize {
        self.inner().leases.len()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

impl LeaseStore for Store {
    fn load(&self) -> Result<Vec<Lease>, Error> {
        Ok(self.inner().leases.values().copied().collect())
    }

    fn commit(&self, changes: &[Change]) -> Result<(), Error> {
        let mut inner = self.inner();
        let fate = std::mem::replace(&mut inner.fate, Fate::Done);
        if matches!(fate, Fate::Done | Fate::DoneUnknown) {
            for change in changes {
                match change {
                    Change::Put(lease) => inner.leases.insert(lease.address, *lease),
                    Change::Remove(address) => inner.leases.remove(address),
                };
            }
        }
        if matches!(fate, Fate::Done | Fate::Lie) {
            return Ok(());
        }
        Err(Error::Leases { attempt: "write", source: "the disk said no".into() })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use dhcp::{Change, Lease, LeaseState, LeaseStore as _};
    use stdx::MacAddr;

    use super::{Fate, Store};

    #[test]
    fn a_commit_takes_effect_as_its_fate_says() {
        let (store, address) = (Store::new(), Ipv4Addr::new(10, 0, 0, 9));
        let (mac, state) = (MacAddr([2, 0, 0, 0, 0, 1]), LeaseState::Bound);
        let lease = Lease { address, mac, state, expires: 9, last_seen: 1, reserved: false };
        for (fate, is_ok, len) in
            [(Fate::Failed, false, 0), (Fate::Lie, true, 0), (Fate::DoneUnknown, false, 1)]
        {
            store.set_fate(fate);
            assert_eq!(store.commit(&[Change::Put(lease)]).is_ok(), is_ok, "{fate:?}");
            assert_eq!(store.len(), len, "{fate:?}");
        }
        assert_eq!(store.load().unwrap(), [lease]);
        assert!(store.commit(&[Change::Remove(address)]).is_ok(), "a fate is met once");
        assert_eq!(store.lease(address), None);
    }
}
