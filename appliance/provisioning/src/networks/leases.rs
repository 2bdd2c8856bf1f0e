//! The leases of one network: kept by a [`LeaseFile`], known to the rest of the box.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use dhcp::{Change, Lease, LeaseFile, LeaseState, LeaseStore};

use crate::index::Index;

/// A lease file that says who has which address.
pub struct KnownLeases {
    file: LeaseFile,
    index: Index,
}

/// The lease files that are open, by interface: nobody else can open them meanwhile.
#[derive(Clone, Default)]
pub struct OpenLeases(Arc<Mutex<BTreeMap<String, Weak<KnownLeases>>>>);

impl OpenLeases {
    /// Opens or makes the file of an interface. May block.
    ///
    /// # Errors
    /// When the file cannot be opened, or is of another program or a newer version.
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

    /// The leases of an interface whose file is open; `None` where it is not.
    ///
    /// # Errors
    /// When they cannot be read.
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
