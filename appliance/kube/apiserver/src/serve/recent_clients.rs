//! Addresses from which an authenticated client came recently.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_edge::Network;
use tokio::time::Instant;

/// Time for which an address counts as recent.
const RECENT_TIME: Duration = Duration::from_secs(3600);
/// Maximum addresses that are stored.
const RECENT_MAX: usize = 1024;

/// The recent addresses; clones share them.
#[derive(Debug, Clone, Default)]
pub struct RecentClients(Arc<Mutex<HashMap<Network, Instant>>>);

impl RecentClients {
    fn seen(&self) -> MutexGuard<'_, HashMap<Network, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an authenticated client from this address.
    pub fn add(&self, address: IpAddr) {
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

    /// Returns true if an authenticated client came from this address recently.
    pub fn has(&self, address: IpAddr) -> bool {
        let seen = self.seen();
        seen.get(&Network::of(address)).is_some_and(|at| at.elapsed() < RECENT_TIME)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::{RECENT_TIME, RECENT_MAX, RecentClients};

    #[tokio::test(start_paused = true)]
    async fn an_address_is_one_for_a_while_and_they_are_bounded() {
        let recent_clients = RecentClients::default();
        let ip = |number: usize| Ipv4Addr::from_bits(number as u32).into();
        for number in 0..=RECENT_MAX {
            recent_clients.add(ip(number));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(!recent_clients.has(ip(0)), "the oldest gave way");
        assert!(recent_clients.has(ip(1)) && recent_clients.has(ip(RECENT_MAX)));
        tokio::time::advance(RECENT_TIME).await;
        assert!(!recent_clients.has(ip(RECENT_MAX)));
    }
}
