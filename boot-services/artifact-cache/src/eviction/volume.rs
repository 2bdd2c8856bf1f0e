//! Measurement of the cache's partition.

use std::io;
use std::path::Path;

use super::Space;

/// Partition of the cache.
pub trait Volume: Send + Sync {
    /// Returns the size and the use of the partition with the folder `root`.
    ///
    /// # Errors
    /// The operating system cannot measure the partition.
    fn space(&self, root: &Path) -> io::Result<Space>;
}

/// Measurement by the operating system, as df(1) does it: blocks that are reserved for root are not
/// part of the capacity.
pub struct SystemVolume;

impl Volume for SystemVolume {
    fn space(&self, root: &Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(root)?;
        let used = found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize);
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        Ok(Space { capacity: used.saturating_add(free), used })
    }
}

#[cfg(test)]
mod tests {
    use super::{SystemVolume, Volume as _};

    #[test]
    fn the_partition_of_a_folder_has_figures() {
        let folder = tempfile::tempdir().unwrap();
        let space = SystemVolume.space(folder.path()).unwrap();
        assert!(space.capacity > 0 && space.used <= space.capacity, "{space:?}");
        assert!(SystemVolume.space(&folder.path().join("missing")).is_err());
    }
}
