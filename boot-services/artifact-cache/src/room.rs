//! Which files leave the cache for a new one. Pure.

use std::time::SystemTime;

use super::{Digest, shown};
use crate::Error;

/// What the cache takes of its partition, in percent, unless its owner says otherwise; beyond,
/// files go for new ones.
pub const BUDGET_PERCENT: u64 = 80;
/// From here on the owner is told.
pub const NOTICE_PERCENT: u64 = 85;
/// A new file may not fill the partition further than this.
pub const REFUSE_PERCENT: u64 = 95;
/// Files that are named when there is no room.
const NAMED: usize = 5;

/// A whole file of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// What it is.
    pub digest: Digest,
    /// Bytes.
    pub size: u64,
    /// When it was last wanted.
    pub last_used: SystemTime,
    /// The URL that it came from; empty when that was forgotten.
    pub origin: String,
    /// Somebody reads it.
    pub in_use: bool,
    /// A workflow will need it.
    pub needed: bool,
    /// Its owner wants it to stay.
    pub pinned: bool,
}

impl Held {
    pub(super) fn of(digest: Digest, size: u64, last_used: SystemTime, origin: String) -> Self {
        let (in_use, needed, pinned) = (false, false, false);
        Self { digest, size, last_used, origin, in_use, needed, pinned }
    }

    /// Whether it may go for a new one.
    pub fn may_go(&self) -> bool {
        !self.in_use && !self.needed && !self.pinned
    }
}

/// A part of a file that no download goes on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbandonedPart {
    /// The key of the file.
    pub key: String,
    /// Bytes.
    pub size: u64,
    /// Time of its last byte.
    pub last_written: SystemTime,
    /// A workflow will need the file.
    pub needed: bool,
}

/// Files and parts that leave the cache for a new file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Eviction {
    /// Keys of abandoned parts.
    pub parts: Vec<String>,
    /// Whole files.
    pub files: Vec<Digest>,
}

/// The partition that the cache lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Its bytes.
    pub capacity: u64,
    /// Those that are taken, by whatever.
    pub used: u64,
}

impl Space {
    /// How full it is.
    pub fn percent(&self) -> u64 {
        // The product of a partition's bytes and a hundred may not fit 64 bits in theory.
        let percent = u128::from(self.used) * 100 / u128::from(self.capacity.max(1));
        percent.min(100) as u64
    }

    fn part(&self, percent: u64) -> u64 {
        (u128::from(self.capacity) * u128::from(percent) / 100) as u64
    }
}

/// Chooses what leaves the cache so that `incoming` more bytes fit within the partition's budget,
/// in percent: first abandoned parts, then the longest unwanted files; never a file that is in use,
/// needed or pinned. Those may take more than the budget, up to the line at which new files are
/// refused.
///
/// # Errors
/// [`Error::CacheFull`]; then nothing goes.
pub fn admit(
    held: &[Held],
    parts: &[AbandonedPart],
    incoming: u64,
    space: Space,
    budget: u64,
) -> Result<Eviction, Error> {
    let mut parts: Vec<&AbandonedPart> = parts.iter().collect();
    parts.sort_by_key(|part| (part.needed, part.last_written));
    let mut free: Vec<&Held> = held.iter().filter(|file| file.may_go()).collect();
    free.sort_by_key(|file| file.last_used);
    let (mut gone, mut then) = (Eviction::default(), space.used.saturating_add(incoming));
    for part in parts {
        if then <= space.part(budget) {
            break;
        }
        then = then.saturating_sub(part.size);
        gone.parts.push(part.key.clone());
    }
    for file in free {
        if then <= space.part(budget) {
            break;
        }
        then = then.saturating_sub(file.size);
        gone.files.push(file.digest);
    }
    if then <= space.part(REFUSE_PERCENT) {
        return Ok(gone);
    }
    Err(Error::CacheFull { incoming, largest: largest(held) })
}

/// The five largest files and their sizes.
pub fn largest(held: &[Held]) -> String {
    let mut largest: Vec<&Held> = held.iter().collect();
    largest.sort_by_key(|file| std::cmp::Reverse(file.size));
    let name = |file: &&Held| {
        let name =
            if file.origin.is_empty() { file.digest.to_string() } else { shown(&file.origin) };
        format!("{name} ({})", stdx::bytes(file.size))
    };
    largest.iter().take(NAMED).map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
