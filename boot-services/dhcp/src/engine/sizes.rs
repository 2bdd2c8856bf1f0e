//! Table sizes of a service, and their limits.

use crate::config::subnet::MAX_POOL_ADDRESSES;
use crate::engine::MAX_CHECKED;
use crate::engine::checks::MAX_CHECKS;
use crate::engine::rate_limiter::{MAX_MACHINES, MAX_UNKNOWN};

/// Number of entries in each table of an engine. Whatever the network does, no table exceeds
/// [`Sizes::LIMITS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Addresses of pools that are leased, offered, given back or in quarantine. What lies outside
    /// of the pools since they were changed is counted too, and goes as it ends.
    pub leases: usize,
    /// Addresses being checked, each with the request that waits for it.
    pub checks: usize,
    /// Reserved addresses remembered as checked.
    pub checked: usize,
    /// Machines whose pace is watched.
    pub machines: usize,
    /// Unknown machines that were reported lately.
    pub unknown: usize,
}

impl Sizes {
    /// Maximum of each number.
    pub const LIMITS: Self = Self {
        leases: MAX_POOL_ADDRESSES as usize,
        checks: MAX_CHECKS,
        checked: MAX_CHECKED,
        machines: MAX_MACHINES,
        unknown: MAX_UNKNOWN,
    };

    /// True if no table exceeds its limit.
    pub fn are_lawful(self) -> bool {
        let Self { leases, checks, checked, machines, unknown } = Self::LIMITS;
        self.leases <= leases
            && self.checks <= checks
            && self.checked <= checked
            && self.machines <= machines
            && self.unknown <= unknown
    }
}
