//! Result of a run: its summary, or its failure.

use std::fmt;

use crate::appliance::Peaks;
use crate::clock::{Moment, SECOND};
use crate::ledger::Violation;

/// Counts of a run in which no rule was broken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// A hash over every event: the same for the same settings.
    pub trace: u64,
    /// Machines that had to boot.
    pub machines: usize,
    /// Boots that reached a running system; includes boots of visitors and repeated boots.
    pub boots: u64,
    /// Virtual time at which the last required machine was up.
    pub all_up: Moment,
    /// Number of simulated events.
    pub events: u64,
    /// Packets sent over the network.
    pub packets: u64,
    /// Packets lost on the network or dropped by a full buffer.
    pub lost: u64,
    /// Number of kills of the box.
    pub kills: u64,
    /// Leases that ended although the machine had requested a renewal.
    pub ran_out: u64,
    /// DECLINE messages: a machine found that another station uses its new address.
    pub declined: u64,
    /// Maximum number of machines with an address.
    pub in_use: usize,
    /// Maximum sizes of the box's tables.
    pub peaks: Peaks,
    /// Virtual duration of the run.
    pub lasted: Moment,
}

/// Broken rule of a run, with the seed and time that reproduce it.
#[derive(Debug, thiserror::Error)]
#[error("after {at_secs:.6} s, seed {seed}: {violation}")]
pub struct Failure {
    /// Seed of the failed run.
    pub seed: u64,
    /// Virtual seconds from the start.
    pub at_secs: f64,
    /// Rule that was broken.
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
