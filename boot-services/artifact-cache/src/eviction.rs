//! Selects the files that are evicted from the cache for a new file. Pure.

pub mod fake;
mod volume;

use std::time::SystemTime;

use super::{Digest, shown};
use crate::Error;
pub use volume::{SystemVolume, Volume};

/// Default budget: the percentage of the partition above which files are evicted for new ones.
pub const BUDGET_PERCENT: u64 = 80;
/// Use of the partition in percent from which the owner is notified.
pub const NOTICE_PERCENT: u64 = 85;
/// Maximum use of the partition in percent that a new file may cause.
pub const REFUSE_PERCENT: u64 = 95;
/// Number of files that the error about a full cache lists.
const NAMED: usize = 5;

/// Complete file of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedFile {
    /// SHA-256 of the content.
    pub digest: Digest,
    /// Size of the file in bytes.
    pub size: u64,
    /// Time of the last use.
    pub last_used: SystemTime,
    /// URL of the file's origin; empty if it is unknown.
    pub origin: String,
    /// True while a machine reads the file.
    pub in_use: bool,
    /// True if a workflow will need the file.
    pub needed: bool,
    /// True if the owner has pinned the file.
    pub pinned: bool,
}

impl CachedFile {
    pub(super) fn of(digest: Digest, size: u64, last_used: SystemTime, origin: String) -> Self {
        let (in_use, needed, pinned) = (false, false, false);
        Self { digest, size, last_used, origin, in_use, needed, pinned }
    }

    /// Returns true if the file may be evicted.
    pub fn may_go(&self) -> bool {
        !self.in_use && !self.needed && !self.pinned
    }
}

/// Partly downloaded file whose download does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbandonedPart {
    /// Key of the file ([`RemoteFile::key`](crate::RemoteFile::key)).
    pub key: String,
    /// Size of the part in bytes.
    pub size: u64,
    /// Time of the last write.
    pub last_written: SystemTime,
    /// True if a workflow will need the file.
    pub needed: bool,
}

/// Files and parts to evict for a new file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Eviction {
    /// Keys of abandoned parts.
    pub parts: Vec<String>,
    /// Digests of complete files.
    pub files: Vec<Digest>,
}

/// Size and use of the partition of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Size of the partition in bytes.
    pub capacity: u64,
    /// Used bytes of the partition, by the cache or other data.
    pub used: u64,
}

impl Space {
    /// Returns the use in percent, at most 100.
    pub fn percent(&self) -> u64 {
        // The product of a partition's bytes and a hundred may not fit 64 bits in theory.
        let percent = u128::from(self.used) * 100 / u128::from(self.capacity.max(1));
        percent.min(100) as u64
    }

    fn part(&self, percent: u64) -> u64 {
        (u128::from(self.capacity) * u128::from(percent) / 100) as u64
    }
}

/// Selects files to evict so that `incoming` more bytes fit into `budget`, a percentage of the
/// partition. Abandoned parts are first, then the least recently used files. Files that are in use,
/// needed or pinned are never evicted; with them the use may exceed the budget, up to
/// [`REFUSE_PERCENT`].
///
/// # Errors
/// [`Error::CacheFull`]: no file is evicted.
pub fn admit(
    files: &[CachedFile],
    parts: &[AbandonedPart],
    incoming: u64,
    space: Space,
    budget: u64,
) -> Result<Eviction, Error> {
    let mut parts: Vec<&AbandonedPart> = parts.iter().collect();
    parts.sort_by_key(|part| (part.needed, part.last_written));
    let mut free: Vec<&CachedFile> = files.iter().filter(|file| file.may_go()).collect();
    free.sort_by_key(|file| file.last_used);
    let (mut eviction, mut used) = (Eviction::default(), space.used.saturating_add(incoming));
    for part in parts {
        if used <= space.part(budget) {
            break;
        }
        used = used.saturating_sub(part.size);
        eviction.parts.push(part.key.clone());
    }
    for file in free {
        if used <= space.part(budget) {
            break;
        }
        used = used.saturating_sub(file.size);
        eviction.files.push(file.digest);
    }
    if used <= space.part(REFUSE_PERCENT) {
        return Ok(eviction);
    }
    Err(Error::CacheFull { incoming, largest: largest(files) })
}

/// Returns the five largest files and their sizes, as text.
pub fn largest(files: &[CachedFile]) -> String {
    let mut largest: Vec<&CachedFile> = files.iter().collect();
    largest.sort_by_key(|file| std::cmp::Reverse(file.size));
    let name = |file: &&CachedFile| {
        let name =
            if file.origin.is_empty() { file.digest.to_string() } else { shown(&file.origin) };
        format!("{name} ({})", stdx::bytes(file.size))
    };
    largest.iter().take(NAMED).map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
