//! Leases of pool addresses: their fields, their clock, and their storage.

use std::net::Ipv4Addr;
use std::time::Instant;

use stdx::MacAddr;

use crate::error::Error;

pub(crate) mod file;
mod pool;
pub(crate) mod table;

/// Lease of one address, with its owner or last owner.
///
/// A machine is identified by its MAC address alone: firmware, loader and operating system of one
/// boot send three client identifiers, and should all get the same address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// IPv4 address that is leased.
    pub address: Ipv4Addr,
    /// MAC of the owner or former owner. For a declined address: of the machine that declined it.
    pub mac: MacAddr,
    /// State of the lease.
    pub state: LeaseState,
    /// End of the lease or, for a declined address, of the quarantine; seconds of [`LeaseClock`].
    pub expires: u64,
    /// Time of the owner's last packet, in seconds of the [`LeaseClock`].
    pub last_seen: u64,
    /// True if the address came from a record, not from a pool. If the record then names another
    /// machine, such a lease ends as soon as no station answers at the address.
    pub reserved: bool,
}

/// Number of bound leases of a service; offers do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeaseCounts {
    /// Number of leases in total.
    pub leases: usize,
    /// Number of leases in current pools. Other leases are from records or from earlier pools.
    pub pooled: usize,
}

/// State of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// The address was offered and not yet requested. Stored in memory only.
    Offered,
    /// The address is leased to its owner.
    Bound,
    /// The owner released the address. The owner gets it again until another machine needs it.
    Released,
    /// A station without a lease uses the address.
    Declined,
}

/// Change of the stored leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Stores the new state of an address.
    Put(Lease),
    /// Removes the state of an address.
    Remove(Ipv4Addr),
}

/// Durable storage of leases.
///
/// One service writes to one store. Both calls may block; they run on threads for blocking work.
pub trait LeaseStore: Send + Sync + 'static {
    /// Returns all leases, in any order.
    ///
    /// # Errors
    /// The leases cannot be read or parsed.
    fn load(&self) -> Result<Vec<Lease>, Error>;

    /// Applies all changes in this order, or none of them. The changes are durable on return.
    ///
    /// # Errors
    /// The changes may not be durable. The next call will contain the same changes again.
    fn commit(&self, changes: &[Change]) -> Result<(), Error>;
}

/// Clock of the leases, in seconds.
///
/// The clock follows the monotonic clock, and starts from the latest time in the stored leases. The
/// wall clock is used only without stored leases. So neither a step of the wall clock nor a box
/// that starts without the time can end a lease early. Time while the box is off does not count: a
/// lease lasts longer than promised, never shorter. So show the end of a lease as a distance from
/// now, not as a date.
#[derive(Debug, Clone, Copy)]
pub struct LeaseClock {
    begins: u64,
    since: Instant,
}

impl LeaseClock {
    /// Creates a clock that starts at `now`. `unix_secs` is the wall clock's time at `now`.
    pub fn new(unix_secs: u64, leases: &[Lease], now: Instant) -> Self {
        let latest = leases.iter().map(|lease| lease.last_seen).max();
        Self { begins: latest.unwrap_or(unix_secs), since: now }
    }

    /// Returns the time at `now`, in seconds.
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
