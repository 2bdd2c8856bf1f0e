//! Caches for tests, which do not depend on the free space of the machine that runs the tests.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{BUDGET_PERCENT, Space, Volume};
use crate::{Cache, Error, Origin};

/// Test double of a partition: reports fixed figures.
impl Volume for Space {
    fn space(&self, _: &Path) -> io::Result<Space> {
        Ok(*self)
    }
}

/// Partition of 1 TiB, with 10 % in use.
pub const LARGE: Space = Space { capacity: 1 << 40, used: (1 << 40) / 10 };

/// Opens a cache in the folder `root`, with the default budget of a partition like [`LARGE`].
///
/// # Errors
/// The folder cannot be created or read ([`Error::Artifact`]).
pub fn cache(root: impl Into<PathBuf>, origin: Arc<dyn Origin>) -> Result<Cache, Error> {
    Cache::open(root, origin, BUDGET_PERCENT, Arc::new(LARGE))
}
