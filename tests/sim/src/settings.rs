//! Settings of a run: its size, its seed and its faults.

use dhcp::Mode;

use crate::faults::Faults;

/// Settings of one run; the same settings give the same run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Machines that must boot, at most [`crate::MAX_MACHINES`].
    pub machines: u32,
    /// Seed of all random decisions.
    pub seed: u64,
    /// Service that the box offers to machines.
    pub mode: Mode,
    /// Faults that happen in the run.
    pub faults: Faults,
    /// A machine whose events are printed to standard error.
    pub watch: Option<usize>,
}

impl Settings {
    /// Settings with [`Mode::Pool`] and [`Faults::ROUGH`].
    pub fn new(machines: u32, seed: u64) -> Self {
        Self { machines, seed, mode: Mode::Pool, faults: Faults::ROUGH, watch: None }
    }
}
