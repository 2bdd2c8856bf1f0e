//! The last lines of each machine, in memory.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::parse::Line;

/// What one machine's lines may take: some thousand of them.
pub const MACHINE_BYTES: usize = 128 << 10;
/// What all lines together may take.
pub const TOTAL_BYTES: usize = 8 << 20;
/// Machines with a log of their own. A new one beyond that takes the place of the one that was
/// silent for longest.
pub const MAX_MACHINES: usize = 16_384;
/// Addresses of no known machine with a log of their own. Anyone can forge them, so they take the
/// place of each other alone.
pub const MAX_UNKNOWN: usize = 64;
/// Most bytes of the lines of one such address.
pub const UNKNOWN_BYTES: usize = 16 << 10;
/// What a line takes beside its text: its fields, and its place in the ring.
const LINE_BYTES: usize = size_of::<Entry>();

/// A line and when it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When the box received it.
    pub received: SystemTime,
    /// What it said.
    pub line: Line,
}

impl Entry {
    /// What a program of a machine printed, told now by another way than syslog.
    pub fn printed(program: &str, text: &str) -> Self {
        Self { received: SystemTime::now(), line: Line::printed(program, text) }
    }

    fn cost(&self) -> usize {
        let Line { time, host, program, process, text, .. } = &self.line;
        let parts = [time, host, program, process, text];
        LINE_BYTES + parts.iter().map(|part| part.len()).sum::<usize>()
    }
}

/// Every machine's last lines. Shared by reference between the receiver and those who ask.
#[derive(Debug)]
pub struct Log {
    machine_bytes: usize,
    total_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    machines: HashMap<String, Ring>,
    /// Names of known machines by their last line's number, and addresses of unknown ones.
    order: BTreeMap<u64, String>,
    unknown: BTreeMap<u64, String>,
    /// Lines received so far.
    count: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Ring {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The number of its last line.
    last: u64,
    is_known: bool,
}

impl Default for Log {
    fn default() -> Self {
        Self::new(MACHINE_BYTES, TOTAL_BYTES)
    }
}

impl Log {
    /// A log that keeps at most so many bytes of one machine, and of all together.
    pub fn new(machine_bytes: usize, total_bytes: usize) -> Self {
        Self { machine_bytes, total_bytes, kept: Mutex::default() }
    }

    /// Keeps a line of `machine`. The oldest ones of it make room; when all together are too many,
    /// those of the machine with most.
    pub fn push(&self, machine: &str, entry: Entry) {
        self.keep(machine, entry, true);
    }

    /// Keeps a line of an address that no machine is known to have.
    pub fn push_unknown(&self, address: &str, entry: Entry) {
        self.keep(address, entry, false);
    }

    fn keep(&self, machine: &str, entry: Entry, is_known: bool) {
        let cost = entry.cost();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *kept;
        kept.count += 1;
        if !kept.machines.contains_key(machine) {
            kept.make_room(is_known);
        }
        let last = kept.count;
        let ring = kept.machines.entry(machine.to_owned()).or_insert_with(|| Ring {
            entries: VecDeque::new(),
            bytes: 0,
            last,
            is_known,
        });
        let order = if ring.is_known { &mut kept.order } else { &mut kept.unknown };
        order.remove(&ring.last);
        order.insert(last, machine.to_owned());
        ring.last = last;
        ring.entries.push_back(entry);
        ring.bytes += cost;
        kept.bytes += cost;
        let most = if ring.is_known { self.machine_bytes } else { UNKNOWN_BYTES };
        kept.bytes -= ring.shrink(most.min(self.machine_bytes));
        while kept.bytes > self.total_bytes
            && let Some(largest) = kept.machines.values_mut().max_by_key(|ring| ring.bytes)
        {
            // Half of it at once, so that this search is rare.
            kept.bytes -= largest.shrink(largest.bytes / 2);
        }
    }

    /// The last `count` lines of `machine`, the oldest first.
    pub fn tail(&self, machine: &str, count: usize) -> Vec<Entry> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ring) = kept.machines.get(machine) else { return Vec::new() };
        let skipped = ring.entries.len().saturating_sub(count);
        ring.entries.iter().skip(skipped).cloned().collect()
    }

    /// Forgets a machine.
    pub fn forget(&self, machine: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.forget(machine);
    }

    /// Bytes of all lines that are kept.
    pub fn bytes(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

impl Kept {
    /// Forgets the one that was silent for longest, where a new one finds no place.
    fn make_room(&mut self, is_known: bool) {
        let silent = match is_known {
            true if self.order.len() >= MAX_MACHINES => self.order.values().next(),
            false if self.unknown.len() >= MAX_UNKNOWN => self.unknown.values().next(),
            _ => None,
        };
        if let Some(name) = silent.cloned() {
            self.forget(&name);
        }
    }

    fn forget(&mut self, machine: &str) {
        if let Some(ring) = self.machines.remove(machine) {
            let order = if ring.is_known { &mut self.order } else { &mut self.unknown };
            order.remove(&ring.last);
            self.bytes -= ring.bytes;
        }
    }
}

impl Ring {
    /// Drops the oldest lines until `limit` bytes remain; how many that were.
    fn shrink(&mut self, limit: usize) -> usize {
        let before = self.bytes;
        while self.bytes > limit
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.cost();
        }
        before - self.bytes
    }
}

#[cfg(test)]
mod tests;
