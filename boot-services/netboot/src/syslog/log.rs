//! The last lines of each machine, in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::parse::Line;

/// What one machine's lines may take: some thousand of them.
pub const MACHINE_BYTES: usize = 128 << 10;
/// What all lines together may take.
pub const TOTAL_BYTES: usize = 8 << 20;
/// Machines with a log of their own. Who is new beyond that takes the place of the one that was
/// silent for longest.
pub const MAX_MACHINES: usize = 1024;
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
    bytes: usize,
}

#[derive(Debug)]
struct Ring {
    entries: VecDeque<Entry>,
    bytes: usize,
    last: SystemTime,
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
        let cost = entry.cost();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *kept;
        if !kept.machines.contains_key(machine) && kept.machines.len() >= MAX_MACHINES {
            let silent = kept.machines.iter().min_by_key(|(_, ring)| ring.last);
            if let Some(ring) =
                silent.map(|(name, _)| name.clone()).and_then(|name| kept.machines.remove(&name))
            {
                kept.bytes -= ring.bytes;
            }
        }
        let ring = kept.machines.entry(machine.to_owned()).or_insert_with(|| Ring {
            entries: VecDeque::new(),
            bytes: 0,
            last: entry.received,
        });
        ring.last = entry.received;
        ring.entries.push_back(entry);
        ring.bytes += cost;
        kept.bytes += cost;
        kept.bytes -= ring.shrink(self.machine_bytes);
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
        if let Some(ring) = kept.machines.remove(machine) {
            kept.bytes -= ring.bytes;
        }
    }

    /// Bytes of all lines that are kept.
    pub fn bytes(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes
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
