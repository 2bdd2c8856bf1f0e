//! Leases of pool addresses: their fields, their clock, and their storage.

use std::net::Ipv4Addr;
use std::time::Instant;

use stdx::MacAddr;

use crate::error::Error;

pub(crate) mod file;
mod pool;
pub(crate) mod table;

/// One address and who has it, or had it last.
///
/// A machine is known by its hardware address alone: firmware, loader and operating system of one
/// boot send three client identifiers, and should all get the same address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Address that is leased.
    pub address: Ipv4Addr,
    /// MAC of the owner or former owner; of a declined address, of the machine that declined it.
    pub mac: MacAddr,
    /// State of the lease.
    pub state: LeaseState,
    /// End of the lease, in seconds of the [`LeaseClock`]; of a declined address, the end of the
    /// quarantine.
    pub expires: u64,
    /// Time of the owner's last packet, in seconds of the [`LeaseClock`].
    pub last_seen: u64,
    /// True if a record gave the address, not a pool. When the record names another machine, such a
    /// lease ends as soon as no station answers at the address.
    pub reserved: bool,
}

/// Counts of the addresses that a service has given away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeaseCounts {
    /// Number of leases in total.
    pub leases: usize,
    /// Number of leases in current pools; the others are from pools that were changed meanwhile.
    pub pooled: usize,
}

/// State of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// Offered, not yet taken. Held in memory only.
    Offered,
    /// The address is in use by its owner.
    Bound,
    /// The address was returned; it stays with its owner until another machine needs it.
    Released,
    /// The address was found in use by a station without a lease.
    Declined,
}

/// A change of the durable leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Stores the new state of an address.
    Put(Lease),
    /// Removes the state of an address.
    Remove(Ipv4Addr),
}

/// Durable storage of leases.
///
/// One service writes one store. Both calls may block; the service calls them on threads that may.
pub trait LeaseStore: Send + Sync + 'static {
    /// Every lease, in any order.
    ///
    /// # Errors
    /// When the leases cannot be read, or cannot be understood.
    fn load(&self) -> Result<Vec<Lease>, Error>;

    /// Applies all changes, in their order, or none. They are durable on return.
    ///
    /// # Errors
    /// When they may not be durable. The same changes will be given again with the next ones.
    fn commit(&self, changes: &[Change]) -> Result<(), Error>;
}

/// Clock of the leases: seconds for which the service runs.
///
/// The clock follows the monotonic clock, and starts from the latest time in the stored leases. The
/// wall clock is used only without stored leases. So neither a step of the wall clock nor a box
/// that starts without the time can end a lease early. The time while the box was off does not
/// count: a lease lasts longer than promised, never shorter. Show the end of a lease as a distance
/// from now, not as a date.
#[derive(Debug, Clone, Copy)]
pub struct LeaseClock {
    begins: u64,
    since: Instant,
}

impl LeaseClock {
    /// Creates a clock that starts at `now`, at which the wall clock shows `unix_secs`.
    pub fn new(unix_secs: u64, leases: &[Lease], now: Instant) -> Self {
        let latest = leases.iter().map(|lease| lease.last_seen).max();
        Self { begins: latest.unwrap_or(unix_secs), since: now }
    }

    /// Returns the lease clock's seconds at `now`.
    pub fn at(self, now: Instant) -> u64 {
        self.begins + now.saturating_duration_since(self.since).as_secs()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Lease, LeaseClock, LeaseState};
    use crate::vectors::{ADDRESS, MAC};

    #[test]
    fn the_clock_never_goes_back() {
        let now = Instant::now();
        let lease = |last_seen| Lease {
            address: ADDRESS,
            mac: MAC,
            state: LeaseState::Bound,
            expires: 2_000,
            last_seen,
            reserved: false,
        };
        let leases = [lease(900), lease(1_000), lease(10)];
        let later = now + Duration::from_secs(60);
        for wall_clock in [0, 5_000] {
            assert_eq!(LeaseClock::new(wall_clock, &leases, now).at(later), 1_060);
            assert_eq!(LeaseClock::new(wall_clock, &[], now).at(later), wall_clock + 60);
        }
        assert_eq!(LeaseClock::new(7, &[], later).at(now), 7, "an earlier time does not panic");
    }
}
