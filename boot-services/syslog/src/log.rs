//! Stores the last lines of each machine in memory.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::parse::Line;

/// Maximum bytes of one machine's lines: about a thousand lines.
pub const MACHINE_BYTES: usize = 128 << 10;
/// Maximum bytes of all lines together.
pub const TOTAL_BYTES: usize = 8 << 20;
/// Maximum machines with a log. At the limit, a new machine replaces the machine with the oldest
/// last line.
pub const MAX_MACHINES: usize = 16_384;
/// Maximum addresses of unknown machines with a log. Any host can forge addresses, so they replace
/// only each other.
pub const MAX_UNKNOWN: usize = 64;
/// Maximum bytes of the lines of one address of an unknown machine.
pub const UNKNOWN_BYTES: usize = 16 << 10;
/// Bytes of a line in addition to its text: its fields, and its entry in the ring.
const LINE_BYTES: usize = size_of::<Entry>();

/// Line of a log, with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Time at which the box received the line.
    pub received: SystemTime,
    /// Parsed content of the message.
    pub line: Line,
}

impl Entry {
    /// Creates an entry for a line of a program's output that arrived just now, not by syslog.
    pub fn printed(program: &str, text: &str) -> Self {
        Self { received: SystemTime::now(), line: Line::printed(program, text) }
    }

    fn cost(&self) -> usize {
        let Line { time, host, program, process, text, .. } = &self.line;
        let parts = [time, host, program, process, text];
        LINE_BYTES + parts.iter().map(|part| part.len()).sum::<usize>()
    }
}

/// Last lines of all machines. The receiver and the readers share it by reference.
#[derive(Debug)]
pub struct Log {
    machine_bytes: usize,
    total_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    machines: HashMap<String, Ring>,
    /// Names of known machines, by [`Ring::last`].
    order: BTreeMap<u64, String>,
    unknown: BTreeMap<u64, String>,
    /// Number of lines received so far.
    count: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Ring {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Number of the machine's last line, counted over all machines.
    last: u64,
    is_known: bool,
}

impl Default for Log {
    fn default() -> Self {
        Self::new(MACHINE_BYTES, TOTAL_BYTES)
    }
}

impl Log {
    /// Creates a log with limits in bytes: for one machine, and for all machines together.
    pub fn new(machine_bytes: usize, total_bytes: usize) -> Self {
        Self { machine_bytes, total_bytes, state: Mutex::default() }
    }

    /// Stores a line of `machine`. If the machine's limit is exceeded, its oldest lines are
    /// dropped. If the total limit is exceeded, lines of the machine with most bytes are dropped.
    pub fn push(&self, machine: &str, entry: Entry) {
        self.store(machine, entry, true);
    }

    /// Stores a line of an address that belongs to no known machine.
    pub fn push_unknown(&self, address: &str, entry: Entry) {
        self.store(address, entry, false);
    }

    fn store(&self, machine: &str, entry: Entry, is_known: bool) {
        let cost = entry.cost();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        state.count += 1;
        if !state.machines.contains_key(machine) {
            state.evict(is_known);
        }
        let last = state.count;
        let ring = state.machines.entry(machine.to_owned()).or_insert_with(|| Ring {
            entries: VecDeque::new(),
            bytes: 0,
            last,
            is_known,
        });
        let order = if ring.is_known { &mut state.order } else { &mut state.unknown };
        order.remove(&ring.last);
        order.insert(last, machine.to_owned());
        ring.last = last;
        ring.entries.push_back(entry);
        ring.bytes += cost;
        state.bytes += cost;
        let most = if ring.is_known { self.machine_bytes } else { UNKNOWN_BYTES };
        state.bytes -= ring.shrink(most.min(self.machine_bytes));
        while state.bytes > self.total_bytes
            && let Some(largest) = state.machines.values_mut().max_by_key(|ring| ring.bytes)
        {
            // Half of the lines at once, so that this search is rare.
            state.bytes -= largest.shrink(largest.bytes / 2);
        }
    }

    /// Returns the last `count` lines of `machine`, the oldest first.
    pub fn tail(&self, machine: &str, count: usize) -> Vec<Entry> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ring) = state.machines.get(machine) else { return Vec::new() };
        let skipped = ring.entries.len().saturating_sub(count);
        ring.entries.iter().skip(skipped).cloned().collect()
    }

    /// Removes all lines of a machine.
    pub fn forget(&self, machine: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forget(machine);
    }

    /// Returns the bytes of all stored lines.
    pub fn bytes(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

impl State {
    /// If the limit of machines is reached, removes the log with the oldest last line. `is_known`
    /// selects known machines or unknown addresses.
    fn evict(&mut self, is_known: bool) {
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
    /// Drops the oldest lines until `limit` bytes remain. Returns the number of bytes dropped.
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
