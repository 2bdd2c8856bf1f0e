//! What a run is made of.

use dhcp::Mode;

use crate::faults::Faults;

/// A run; the same settings give the same run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Machines that must boot, at most [`crate::MAX_MACHINES`].
    pub machines: u32,
    /// Where all chance comes from.
    pub seed: u64,
    /// What the box does for machines.
    pub mode: Mode,
    /// What goes wrong.
    pub faults: Faults,
    /// A machine whose events are printed to standard error.
    pub watch: Option<usize>,
}

impl Settings {
    /// A pool, and a bad day.
    pub fn new(machines: u32, seed: u64) -> Self {
        Self { machines, seed, mode: Mode::Pool, faults: Faults::ROUGH, watch: None }
    }
}
