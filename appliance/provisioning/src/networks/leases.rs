//! DHCP leases of one network, stored in a [`LeaseFile`] and copied to the index.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use dhcp::{Change, Lease, LeaseFile, LeaseState, LeaseStore};

use crate::index::Index;

/// Lease store that copies each change to the index.
pub struct KnownLeases {
    file: LeaseFile,
    index: Index,
}

/// Open lease files by interface, for all readers: a lease file cannot be opened twice.
#[derive(Clone, Default)]
pub struct OpenLeases(Arc<Mutex<BTreeMap<String, Weak<KnownLeases>>>>);

impl OpenLeases {
    /// Opens or creates the lease file of an interface. May block.
    ///
    /// # Errors
    /// The file cannot be opened, or another program or a newer version wrote the file.
    pub fn open(
        &self,
        interface: &str,
        path: &Path,
        index: Index,
    ) -> Result<Arc<KnownLeases>, dhcp::Error> {
        let leases = Arc::new(KnownLeases { file: LeaseFile::open(path)?, index });
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(interface.to_owned(), Arc::downgrade(&leases));
        Ok(leases)
    }

    /// Returns the leases of an interface; `None` if its file is not open.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, interface: &str) -> Option<Result<Vec<Lease>, dhcp::Error>> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let leases = open.get(interface).and_then(Weak::upgrade);
        drop(open);
        leases.map(|leases| leases.file.load())
    }
}

impl KnownLeases {
    fn know(&self, lease: &Lease) {
        if lease.state == LeaseState::Bound {
            self.index.put_lease(lease.address, lease.mac);
        } else {
            self.index.remove_lease(lease.address);
        }
    }
}

impl LeaseStore for KnownLeases {
    fn load(&self) -> Result<Vec<Lease>, dhcp::Error> {
        let leases = self.file.load()?;
        leases.iter().for_each(|lease| self.know(lease));
        Ok(leases)
    }

    fn commit(&self, changes: &[Change]) -> Result<(), dhcp::Error> {
        self.file.commit(changes)?;
        for change in changes {
            match change {
                Change::Put(lease) => self.know(lease),
                Change::Remove(address) => self.index.remove_lease(*address),
            }
        }
        Ok(())
    }
}
