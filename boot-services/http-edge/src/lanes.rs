//! Separate limits for addresses from which an authenticated client connected recently.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::{Connections, Limits, Network, Place};

/// Time for which an address counts as recent.
const RECENT_TIME: Duration = Duration::from_secs(3600);
/// Maximum recent addresses that are stored.
const RECENT_MAX: usize = 1024;

/// Connections of a listener, in two lanes with the same limits: for unknown addresses, and for
/// addresses from which an authenticated client connected within an hour. Unknown addresses cannot
/// use up the places of the others.
#[derive(Debug, Clone)]
pub struct Lanes {
    unknown: Connections,
    returning: Connections,
    recent: RecentClients,
}

impl Lanes {
    /// Creates two empty lanes, each with these limits.
    pub fn new(limits: Limits) -> Self {
        let (unknown, returning) = (Connections::new(limits), Connections::new(limits));
        Self { unknown, returning, recent: RecentClients::default() }
    }

    /// Returns a place for a connection from `address`, as [`Connections::enter`] does.
    pub fn enter(&self, address: IpAddr) -> Option<Place> {
        let lane = if self.recent.has(address) { &self.returning } else { &self.unknown };
        lane.enter(address)
    }

    /// Records that an authenticated client connected from this address; counts for an hour.
    pub fn authenticated(&self, address: IpAddr) {
        self.recent.add(address);
    }
}

/// Addresses of recent authenticated clients; clones share them.
#[derive(Debug, Clone, Default)]
struct RecentClients(Arc<Mutex<HashMap<Network, Instant>>>);

impl RecentClients {
    fn seen(&self) -> MutexGuard<'_, HashMap<Network, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that an authenticated client connected from this address.
    fn add(&self, address: IpAddr) {
        let mut seen = self.seen();
        if seen.len() >= RECENT_MAX {
            seen.retain(|_, at| at.elapsed() < RECENT_TIME);
        }
        if seen.len() >= RECENT_MAX {
            let oldest = seen.iter().min_by_key(|(_, at)| **at).map(|(network, _)| *network);
            oldest.and_then(|oldest| seen.remove(&oldest));
        }
        seen.insert(Network::of(address), Instant::now());
    }

    /// Returns true if an authenticated client connected from this address within an hour.
    fn has(&self, address: IpAddr) -> bool {
        let seen = self.seen();
        seen.get(&Network::of(address)).is_some_and(|at| at.elapsed() < RECENT_TIME)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::{RECENT_MAX, RECENT_TIME, RecentClients};

    #[tokio::test(start_paused = true)]
    async fn an_address_is_one_for_a_while_and_they_are_bounded() {
        let recent = RecentClients::default();
        let ip = |number: usize| Ipv4Addr::from_bits(number as u32).into();
        for number in 0..=RECENT_MAX {
            recent.add(ip(number));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(!recent.has(ip(0)), "the oldest gave way");
        assert!(recent.has(ip(1)) && recent.has(ip(RECENT_MAX)));
        tokio::time::advance(RECENT_TIME).await;
        assert!(!recent.has(ip(RECENT_MAX)));
    }
}
