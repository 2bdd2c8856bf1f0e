//! The leases of one network: kept by a [`LeaseFile`], known to the rest of the box.

use std::path::Path;
use std::sync::Arc;

use dhcp::{Change, Lease, LeaseFile, LeaseState, LeaseStore};

use crate::index::Index;

/// A lease file that says who has which address.
pub struct KnownLeases {
    file: LeaseFile,
    index: Index,
}

impl KnownLeases {
    /// Opens or makes the file. May block.
    ///
    /// # Errors
    /// When the file cannot be opened, or is of another program or a newer version.
    pub fn open(path: &Path, index: Index) -> Result<Arc<Self>, dhcp::Error> {
        Ok(Arc::new(Self { file: LeaseFile::open(path)?, index }))
    }

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
