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

/// Which files go, so that `incoming` more bytes fit: the longest unwanted first, until the
/// partition keeps to its budget, in percent; never one that is in use, needed or pinned. Those may
/// take more than the budget, up to the line at which new files are refused.
///
/// # Errors
/// [`Error::CacheFull`]; then nothing goes.
pub fn admit(
    held: &[Held],
    incoming: u64,
    space: Space,
    budget: u64,
) -> Result<Vec<Digest>, Error> {
    let mut free: Vec<&Held> = held.iter().filter(|file| file.may_go()).collect();
    free.sort_by_key(|file| file.last_used);
    let (mut gone, mut then) = (Vec::new(), space.used.saturating_add(incoming));
    for file in free {
        if then <= space.part(budget) {
            break;
        }
        then = then.saturating_sub(file.size);
        gone.push(file.digest);
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
mod tests {
    use super::*;
    use std::time::Duration;

    /// Name, size, age; `*` behind the name: in use, `!`: needed.
    fn held(files: &[(&str, u64, u64)]) -> Vec<Held> {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let one = |(name, size, age): &(&str, u64, u64)| {
            let digest = Digest::of(name.as_bytes());
            let mut file =
                Held::of(digest, *size, now - Duration::from_secs(*age), name.to_string());
            (file.in_use, file.needed) = (name.ends_with('*'), name.ends_with('!'));
            file
        };
        files.iter().map(one).collect()
    }

    #[track_caller]
    fn goes(files: &[(&str, u64, u64)], incoming: u64, used: u64, wanted: &str) {
        let held = held(files);
        let name = |digest: &Digest| {
            held.iter().find(|file| file.digest == *digest).unwrap().origin.clone()
        };
        let space = Space { capacity: 1000, used };
        let got = match admit(&held, incoming, space, BUDGET_PERCENT) {
            Ok(gone) => gone.iter().map(name).collect::<Vec<_>>().join(" "),
            Err(Error::CacheFull { largest, .. }) => format!("full: {largest}"),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(got, wanted);
    }

    #[test]
    fn the_longest_unwanted_goes_and_no_more_than_must() {
        let files = [("new", 200, 1), ("old", 300, 50), ("older", 100, 99)];
        goes(&files, 200, 600, "");
        goes(&files, 201, 600, "older");
        goes(&files, 301, 600, "older old");
        goes(&files, 800, 600, "older old new");
    }

    #[test]
    fn what_is_in_use_or_needed_stays() {
        let files = [("used*", 300, 99), ("pinned!", 400, 98), ("free", 100, 1)];
        goes(&files, 100, 800, "free");
        goes(&files, 250, 800, "free");
        let full = "full: pinned! (400 B), used* (300 B), free (100 B)";
        goes(&files, 251, 800, full);
    }

    #[test]
    fn the_five_largest_are_named() {
        let files: Vec<(String, u64, u64)> =
            (1..9).map(|n| (format!("f{n}!"), n * 10, n)).collect();
        let files: Vec<(&str, u64, u64)> =
            files.iter().map(|(name, size, age)| (name.as_str(), *size, *age)).collect();
        let full = "full: f8! (80 B), f7! (70 B), f6! (60 B), f5! (50 B), f4! (40 B)";
        goes(&files, u64::MAX, 900, full);
    }
}
