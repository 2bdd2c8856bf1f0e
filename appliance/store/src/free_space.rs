//! Free space on the disk. The store needs free space for deletions, which also write, and its own
//! size again for a migration to a later format.
//!
//! ```text
//! free  = what the disk has + what the store's file has and does not use
//! needed = the store once more + MARGIN
//! ```
//!
//! The disk is short of space below `needed` bytes: the store keeps little history, and writers for
//! clients refuse changes that make the store grow ([`crate::Txn::free_space`]). Deletions and the
//! box's own small writes continue. The file `STORE.reserve` provides their space if other programs
//! filled the disk completely.

pub mod fake;

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redb::{Database, WriteTransaction};
use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::error::storage;
use crate::{Error, Options};

/// Bytes that must stay free besides a copy of the store: for keys, leases, settings and logs.
const MARGIN: u64 = 16 << 20;
/// Free bytes of the disk below which the reserve is released.
const RESERVE_UNTIL: u64 = 4 << 20;
/// Maximum bytes of history while the disk is short of space.
const SHORT_LOG_BYTES: u64 = 1 << 20;
/// Interval between counts of the used pages while the disk is short of space. A count reads the
/// whole store.
const COUNTED_EVERY: Duration = Duration::from_secs(5);
/// Bytes that the file grows for each byte of a change: the object, its history, and pages that are
/// reused only after the next commit.
const WRITTEN: u64 = 3;
/// Size in bytes of a block in stat(2).
const BLOCK: u64 = 512;

/// Disk that holds the store's file.
pub trait Volume: Send + Sync {
    /// Returns the free bytes of the disk that holds `path`, for an unprivileged user.
    ///
    /// # Errors
    /// The operating system reports an error.
    fn free(&self, path: &Path) -> io::Result<u64>;
}

/// Volume that gets the free space from the operating system.
pub struct SystemVolume;

impl Volume for SystemVolume {
    fn free(&self, path: &Path) -> io::Result<u64> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let found = statvfs(folder.unwrap_or(Path::new(".")))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

/// Free and needed space for a store, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreeSpace {
    /// Free bytes: on the disk, and within the store's file if its pages were counted.
    pub free: u64,
    /// Bytes that must be free for a migration.
    pub needed: u64,
}

impl FreeSpace {
    /// Returns true if changes that make the store grow should be refused.
    pub fn is_short(&self) -> bool {
        self.free < self.needed
    }

    /// Returns the space after changes of `bytes` bytes.
    pub(crate) fn after(self, bytes: u64) -> Self {
        Self { free: self.free.saturating_sub(bytes.saturating_mul(WRITTEN)), ..self }
    }

    /// Returns the maximum bytes of history; `limit` unless the disk is short of space.
    pub(crate) fn log_bytes(self, limit: u64) -> u64 {
        if self.is_short() { limit.min(SHORT_LOG_BYTES) } else { limit }
    }
}

/// Measures the space at each commit, and manages the reserve file.
pub(crate) struct Gauge {
    path: PathBuf,
    volume: Arc<dyn Volume>,
    reserve: Option<Reserve>,
    /// Bytes of the used pages, and the time at which they were counted.
    used: Option<(u64, Instant)>,
}

struct Reserve {
    path: PathBuf,
    bytes: u64,
    is_there: bool,
}

impl Gauge {
    pub fn new(path: &Path, options: &Options) -> Self {
        let reserve = (options.reserve > 0).then(|| {
            let path = PathBuf::from(format!("{}.reserve", path.display()));
            let found = path.metadata().map_or(0, |found| found.blocks() * BLOCK);
            Reserve { path, bytes: options.reserve, is_there: found >= options.reserve }
        });
        Self { path: path.to_owned(), volume: Arc::clone(&options.volume), reserve, used: None }
    }

    /// Returns the free space of the disk, without the unused pages of the store's file.
    pub fn without_pages(&self) -> FreeSpace {
        let free = self.volume.free(&self.path).unwrap_or(u64::MAX);
        FreeSpace { free, needed: taken(&self.path).saturating_add(MARGIN) }
    }

    /// Measures the space. `txn` counts the used pages if the disk is short of space.
    pub fn read(&mut self, txn: &WriteTransaction) -> FreeSpace {
        let mut free_space = self.without_pages();
        if free_space.free < RESERVE_UNTIL && self.give_up() {
            free_space = self.without_pages();
        }
        if !free_space.is_short() {
            self.used = None;
            self.keep_reserve(free_space);
            return free_space;
        }
        let taken = free_space.needed.saturating_sub(MARGIN);
        let used = self.used(txn).unwrap_or(taken);
        let unused = taken.saturating_sub(used);
        FreeSpace {
            free: free_space.free.saturating_add(unused),
            needed: used.saturating_add(MARGIN),
        }
    }

    fn used(&mut self, txn: &WriteTransaction) -> Option<u64> {
        let counted = self.used.filter(|(_, at)| at.elapsed() < COUNTED_EVERY);
        if let Some((used, _)) = counted {
            return Some(used);
        }
        let stats = txn.stats().inspect_err(|error| {
            tracing::warn!(%error, "cannot count the pages of the store");
        });
        let stats = stats.ok()?;
        let used = stats.allocated_pages().saturating_mul(stats.page_size() as u64);
        self.used = Some((used, Instant::now()));
        Some(used)
    }

    /// Deletes the reserve file. Returns true if there was a reserve file.
    fn give_up(&mut self) -> bool {
        let Some(reserve) = self.reserve.as_mut().filter(|reserve| reserve.is_there) else {
            return false;
        };
        reserve.is_there = false;
        match std::fs::remove_file(&reserve.path) {
            Ok(()) => {
                tracing::warn!("the disk is full: the store now uses its reserved space");
                true
            }
            Err(error) => {
                tracing::error!(%error, path = %reserve.path.display(), "cannot reserve space");
                false
            }
        }
    }

    /// Creates the reserve file again if there is enough space.
    fn keep_reserve(&mut self, free_space: FreeSpace) {
        let Some(reserve) = self.reserve.as_mut().filter(|reserve| !reserve.is_there) else {
            return;
        };
        if free_space.free < free_space.needed.saturating_add(reserve.bytes) {
            return;
        }
        match reserve.make() {
            Ok(()) => reserve.is_there = true,
            Err(error) => {
                tracing::warn!(%error, path = %reserve.path.display(), "cannot reserve space");
                self.reserve = None;
            }
        }
    }
}

impl Reserve {
    fn make(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).mode(0o600).open(&self.path)?;
        Ok(fallocate(&file, FallocateFlags::empty(), 0, self.bytes)?)
    }
}

/// Returns the bytes that the file at `path` occupies on the disk.
fn taken(path: &Path) -> u64 {
    path.metadata().map_or(0, |found| found.blocks() * BLOCK)
}

/// Checks that a copy of the store at `path` fits on the disk. If not, compacts the store's file
/// and checks again.
///
/// # Errors
/// [`Error::NoRoom`] if a copy does not fit, or the disk fails.
pub(crate) fn for_a_copy(path: &Path, db: &mut Database, volume: &dyn Volume) -> Result<(), Error> {
    let free_space = || {
        let free = volume.free(path).unwrap_or(u64::MAX);
        (free, taken(path).saturating_add(MARGIN))
    };
    let (free, needed) = free_space();
    if free >= needed {
        return Ok(());
    }
    db.compact().map_err(storage("compact"))?;
    let (free, needed) = free_space();
    match free >= needed {
        true => Ok(()),
        false => Err(Error::NoRoom { path: path.to_owned(), needed, free }),
    }
}
