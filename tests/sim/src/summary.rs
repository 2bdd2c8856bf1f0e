//! What came of a run.

use std::fmt;

use crate::appliance::Peaks;
use crate::clock::{Moment, SECOND};
use crate::ledger::Violation;

/// A run in which nothing was broken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// A hash over every event: the same for the same settings.
    pub trace: u64,
    /// Machines that had to boot.
    pub machines: usize,
    /// Boots that came to a running system, visitors' and repeated ones included.
    pub boots: u64,
    /// When the last machine was up that had to be.
    pub all_up: Moment,
    /// Events in all.
    pub events: u64,
    /// Packets given to the wire.
    pub packets: u64,
    /// Packets that the wire lost, or that found no room.
    pub lost: u64,
    /// How often the box died.
    pub kills: u64,
    /// Leases that ran out while faults lasted.
    pub ran_out: u64,
    /// Addresses that a machine found to be used by another.
    pub declined: u64,
    /// How many machines had an address at most.
    pub in_use: usize,
    /// The fullest that the box's tables were.
    pub peaks: Peaks,
    /// Virtual time in all.
    pub lasted: Moment,
}

/// What was broken, and how to see it again.
#[derive(Debug, thiserror::Error)]
#[error("after {at_secs:.6} s, seed {seed}: {violation}")]
pub struct Failure {
    /// The run's seed.
    pub seed: u64,
    /// Virtual seconds from the start.
    pub at_secs: f64,
    /// What was broken.
    pub violation: Violation,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machines, boots, events, packets, lost, kills, ran_out, declined, .. } = self;
        let Peaks { leases, checks, inbox, transfers } = self.peaks;
        let (all_up, lasted) = (self.all_up / SECOND, self.lasted / SECOND);
        writeln!(f, "{machines} machines, {boots} boots; all up after {all_up} s of {lasted} s")?;
        writeln!(f, "{packets} packets, {lost} lost; {events} events, trace {:016x}", self.trace)?;
        writeln!(f, "box killed {kills} times; {ran_out} leases ran out, {declined} declined")?;
        write!(
            f,
            "at most {in_use} addresses in use; {leases} leases, {checks} checks, {inbox} \
             datagrams waiting, {transfers} transfers in the box",
            in_use = self.in_use
        )
    }
}
