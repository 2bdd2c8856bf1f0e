//! What the kernel kept of its own end: the last lines before a panic, in the firmware's variables
//! or in memory that a restart leaves alone.
//!
//! One panic is several records, each with a first line such as `Panic#1 Part2`; part 1 is the
//! end. What a record holds is the kernel's, but its lines may say what a stranger's packet said.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The kept lines, on the state volume.
const KEPT: &str = "last-panic";
/// Bytes of them; the last ones say why.
const KEPT_MAX: usize = 64 * 1024;
/// Records that are looked at, and bytes of each.
const RECORDS_MAX: usize = 256;
const RECORD_MAX: u64 = 64 * 1024;
/// Records of one panic are written within this time.
const TOGETHER: Duration = Duration::from_secs(60);
/// Characters of a reason.
const REASON_MAX: usize = 200;
/// What the kernel says last.
const PANIC: &str = "Kernel panic - not syncing: ";
/// And what it says when it goes on, or is told to panic because of it.
const FAULTS: [&str; 5] =
    ["BUG: ", "Oops: ", "kernel BUG at ", "general protection fault", "INFO: "];

/// A kernel's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panic {
    /// The line that says why, without what every such line begins with.
    pub reason: String,
    /// When, as the machine's clock had it.
    pub at: SystemTime,
}

/// Takes what `folder` (`/sys/fs/pstore`) holds: keeps the newest in `keep_in/last-panic` and
/// removes the records, for the firmware has little room for them; they go also where the disk has
/// no room. `None` when no kernel ended badly.
pub fn take(folder: &Path, keep_in: &Path) -> Option<Panic> {
    let (records, paths) = records(folder);
    let found = newest(records);
    if let Some((panic, text)) = &found
        && let Err(error) = durable_file::replace(keep_in, KEPT, text.as_bytes())
    {
        eprintln!("tinbox: cannot keep what the kernel said ({}): {error}", panic.reason);
        // The next start tries again. A full disk stays full: then the same end would count as
        // another one at each start, and the box be in safe mode for good.
        if !stdx::is_full(&error) {
            return found.map(|(panic, _)| panic);
        }
    }
    for path in paths {
        if let Err(error) = fs::remove_file(&path) {
            eprintln!("tinbox: cannot remove {}: {error}", path.display());
        }
    }
    found.map(|(panic, _)| panic)
}

/// A record: its part of an end, which end, when, and its text.
#[derive(Debug, Clone)]
struct Record {
    head: String,
    part: u32,
    at: SystemTime,
    text: String,
}

/// The records of kernels' ends, and the files of all.
fn records(folder: &Path) -> (Vec<Record>, Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return Default::default() };
    let paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).take(RECORDS_MAX).collect();
    let read = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        name.starts_with("dmesg-").then_some(())?;
        let file = File::open(path).ok()?;
        let at = file.metadata().and_then(|data| data.modified()).unwrap_or(UNIX_EPOCH);
        let mut bytes = Vec::new();
        file.take(RECORD_MAX).read_to_end(&mut bytes).ok()?;
        Some(record(&String::from_utf8_lossy(&bytes), at))
    };
    (paths.iter().filter_map(read).collect(), paths)
}

fn record(text: &str, at: SystemTime) -> Record {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    match first.split_once(" Part").and_then(|(head, part)| Some((head, part.trim().parse().ok()?)))
    {
        Some((head, part)) => Record { head: head.to_owned(), part, at, text: rest.to_owned() },
        None => Record { head: String::new(), part: 1, at, text: text.to_owned() },
    }
}

/// The last end: of a panic, and of the fault that came before it where both were written, the
/// panic.
fn newest(mut records: Vec<Record>) -> Option<(Panic, String)> {
    let last = records.iter().map(|record| record.at).max()?;
    records.retain(|record| last.duration_since(record.at).is_ok_and(|gap| gap <= TOGETHER));
    let rank = |record: &Record| (record.head.starts_with("Panic"), record.head.clone());
    let head = records.iter().max_by_key(|record| rank(record))?.head.clone();
    records.retain(|record| record.head == head);
    // The highest part is the oldest.
    records.sort_by_key(|record| std::cmp::Reverse(record.part));
    let text: String = records.iter().map(|record| record.text.as_str()).collect();
    let from = text.ceil_char_boundary(text.len().saturating_sub(KEPT_MAX));
    let text = text[from..].to_owned();
    Some((Panic { reason: reason(&text), at: last }, text))
}

/// Why, in the kernel's words.
fn reason(text: &str) -> String {
    let after = |mark: &str| {
        let line = text.lines().rev().find(|line| line.contains(mark))?;
        line.find(mark).map(|at| &line[at..])
    };
    let panic = after(PANIC).map(|line| &line[PANIC.len()..]);
    let why = panic.or_else(|| FAULTS.iter().find_map(|mark| after(mark)));
    let why = why.map_or("it does not say why", str::trim);
    why.chars().filter(|char| !char.is_control()).take(REASON_MAX).collect()
}

#[cfg(test)]
mod tests;
