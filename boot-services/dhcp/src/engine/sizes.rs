//! Table sizes of the DHCPv4 service, and their limits.

use crate::config::subnet::MAX_POOL_ADDRESSES;
use crate::engine::MAX_CHECKED;
use crate::engine::checks::MAX_CHECKS;
use crate::engine::rate_limiter::{MAX_MACHINES, MAX_UNKNOWN};

/// Number of entries in each table of an engine, at most [`Sizes::LIMITS`] under any traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Pool addresses that are leased, offered, released or in quarantine. Addresses that a change
    /// of the pools excluded are counted until their leases end.
    pub leases: usize,
    /// Addresses being checked for conflicts, each with a waiting request.
    pub checks: usize,
    /// Reserved addresses that were checked recently.
    pub checked: usize,
    /// Known machines whose packet rate is tracked.
    pub machines: usize,
    /// Unknown machines that were reported recently.
    pub unknown: usize,
}

impl Sizes {
    /// Maximum number of entries in each table.
    pub const LIMITS: Self = Self {
        leases: MAX_POOL_ADDRESSES as usize,
        checks: MAX_CHECKS,
        checked: MAX_CHECKED,
        machines: MAX_MACHINES,
        unknown: MAX_UNKNOWN,
    };

    /// Returns true if no table exceeds its limit.
    pub fn are_lawful(self) -> bool {
        let Self { leases, checks, checked, machines, unknown } = Self::LIMITS;
        self.leases <= leases
            && self.checks <= checks
            && self.checked <= checked
            && self.machines <= machines
            && self.unknown <= unknown
    }
}
