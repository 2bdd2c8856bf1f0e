//! Tests the order of eviction.

use super::*;
use std::time::Duration;

/// Returns files by name, size and age in seconds. A `*` behind the name means in use, a `!` means
/// needed.
fn cached(files: &[(&str, u64, u64)]) -> Vec<CachedFile> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let one = |(name, size, age): &(&str, u64, u64)| {
        let digest = Digest::of(name.as_bytes());
        let mut file =
            CachedFile::of(digest, *size, now - Duration::from_secs(*age), name.to_string());
        (file.in_use, file.needed) = (name.ends_with('*'), name.ends_with('!'));
        file
    };
    files.iter().map(one).collect()
}

fn goes(files: &[(&str, u64, u64)], incoming: u64, used: u64, expected: &str) {
    goes_beside(&[], files, incoming, used, expected);
}

#[track_caller]
fn goes_beside(
    parts: &[(&str, u64, u64)],
    files: &[(&str, u64, u64)],
    incoming: u64,
    used: u64,
    expected: &str,
) {
    let part = |cached: CachedFile| AbandonedPart {
        key: cached.origin,
        size: cached.size,
        last_written: cached.last_used,
        needed: cached.needed,
    };
    let parts: Vec<AbandonedPart> = cached(parts).into_iter().map(part).collect();
    let cached = cached(files);
    let name =
        |digest: &Digest| cached.iter().find(|file| file.digest == *digest).unwrap().origin.clone();
    let space = Space { capacity: 1000, used };
    let got = match admit(&cached, &parts, incoming, space, BUDGET_PERCENT) {
        Ok(Eviction { mut parts, files }) => {
            parts.extend(files.iter().map(name));
            parts.join(" ")
        }
        Err(Error::CacheFull { largest, .. }) => format!("full: {largest}"),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(got, expected);
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
fn what_nobody_goes_on_fetching_goes_before_whole_files() {
    let files = [("old", 300, 99), ("used*", 100, 1)];
    let parts = [("wanted!", 100, 50), ("part", 100, 1), ("older", 100, 2)];
    goes_beside(&parts, &files, 100, 700, "");
    goes_beside(&parts, &files, 101, 700, "older");
    goes_beside(&parts, &files, 401, 700, "older part wanted! old");
    goes_beside(&parts, &files, 200, 800, "older part");
    let full = "full: old (300 B), used* (100 B)";
    goes_beside(&parts, &files, 851, 700, full);
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
    let files: Vec<(String, u64, u64)> = (1..9).map(|n| (format!("f{n}!"), n * 10, n)).collect();
    let files: Vec<(&str, u64, u64)> =
        files.iter().map(|(name, size, age)| (name.as_str(), *size, *age)).collect();
    let full = "full: f8! (80 B), f7! (70 B), f6! (60 B), f5! (50 B), f4! (40 B)";
    goes(&files, u64::MAX, 900, full);
}
