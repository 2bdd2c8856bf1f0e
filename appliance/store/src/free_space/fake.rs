//! Test double of a volume with a given number of free bytes.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Volume;

/// Test double of a volume; reports a fixed number of free bytes.
pub struct FreeSpace(AtomicU64);

impl FreeSpace {
    /// Creates a volume with `bytes` free bytes.
    pub fn new(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    /// Sets the number of free bytes.
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

impl Volume for FreeSpace {
    fn free(&self, _: &Path) -> io::Result<u64> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}
