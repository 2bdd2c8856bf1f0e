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

/// Measurement by the operating system. Blocks reserved for root count as used.
pub struct SystemVolume;

impl Volume for SystemVolume {
    fn space(&self, root: &Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(root)?;
        let capacity = found.f_blocks.saturating_mul(found.f_frsize);
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        Ok(Space { capacity, used: capacity.saturating_sub(free) })
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
