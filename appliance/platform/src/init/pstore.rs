//! Last kernel messages before a panic, kept by the firmware or in memory that a restart does not
//! clear (pstore).
//!
//! One panic gives several records, each with a first line such as `Panic#1 Part2`. Part 1 contains
//! the newest lines. The kernel writes the records, but the lines may contain text from
//! unauthenticated packets.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// File on the state volume with the last kernel messages.
const KEPT: &str = "last-panic";
/// Maximum size of [`KEPT`] in bytes. The last lines are kept, because they contain the reason.
const KEPT_MAX: usize = 64 * 1024;
/// Maximum number of records to read, and maximum bytes of a record.
const RECORDS_MAX: usize = 256;
const RECORD_MAX: u64 = 64 * 1024;
/// Maximum time between two records of one panic.
const TOGETHER: Duration = Duration::from_secs(60);
/// Maximum length of a reason in characters.
const REASON_MAX: usize = 200;
/// Prefix of the kernel's line with the reason of a panic.
const PANIC: &str = "Kernel panic - not syncing: ";
/// Prefixes of kernel lines about a fault, after which the kernel continues or panics.
const FAULTS: [&str; 5] =
    ["BUG: ", "Oops: ", "kernel BUG at ", "general protection fault", "INFO: "];

/// Panic or fault of the previous kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panic {
    /// Line with the reason, without `Kernel panic - not syncing: `.
    pub reason: String,
    /// Time of the record, by the machine's clock.
    pub at: SystemTime,
}

/// Reads the records in `folder` (`/sys/fs/pstore`), keeps the newest text in `keep_in/last-panic`
/// and removes the records. The firmware has little space, so the records are also removed when the
/// disk is full. Returns `None` if there is no record of a panic or fault.
pub fn take(folder: &Path, keep_in: &Path) -> Option<Panic> {
    let (records, paths) = records(folder);
    let found = newest(records);
    if let Some((panic, text)) = &found
        && let Err(error) = durable_file::replace(keep_in, KEPT, text.as_bytes())
    {
        eprintln!("tinbox: cannot save the kernel's last messages ({}): {error}", panic.reason);
        // The next start tries again. On a full disk, the records must go: otherwise every start
        // would count the same panic again, and the box would stay in safe mode.
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

/// Record of pstore: first line, part number, time and text.
#[derive(Debug, Clone)]
struct Record {
    head: String,
    part: u32,
    at: SystemTime,
    text: String,
}

/// Returns the records of kernel messages, and the paths of all files.
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

/// Returns the newest panic with its text. If the kernel recorded both a fault and the panic that
/// followed, the panic is returned.
fn newest(mut records: Vec<Record>) -> Option<(Panic, String)> {
    let last = records.iter().map(|record| record.at).max()?;
    records.retain(|record| last.duration_since(record.at).is_ok_and(|gap| gap <= TOGETHER));
    let rank = |record: &Record| (record.head.starts_with("Panic"), record.head.clone());
    let head = records.iter().max_by_key(|record| rank(record))?.head.clone();
    records.retain(|record| record.head == head);
    // The highest part number is the oldest.
    records.sort_by_key(|record| std::cmp::Reverse(record.part));
    let text: String = records.iter().map(|record| record.text.as_str()).collect();
    let from = text.ceil_char_boundary(text.len().saturating_sub(KEPT_MAX));
    let text = text[from..].to_owned();
    Some((Panic { reason: reason(&text), at: last }, text))
}

/// Returns the reason of a panic or fault from the kernel's lines.
fn reason(text: &str) -> String {
    let after = |mark: &str| {
        let line = text.lines().rev().find(|line| line.contains(mark))?;
        line.find(mark).map(|at| &line[at..])
    };
    let panic = after(PANIC).map(|line| &line[PANIC.len()..]);
    let why = panic.or_else(|| FAULTS.iter().find_map(|mark| after(mark)));
    let why = why.map_or("no reason given", str::trim);
    why.chars().filter(|char| !char.is_control()).take(REASON_MAX).collect()
}

#[cfg(test)]
mod tests;
