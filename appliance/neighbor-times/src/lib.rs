//! Times of the last answers of machines to ARP (RFC 826), from the kernel's neighbor table.
//!
//! The kernel sends an ARP request only when the box sends something to the address. So the box
//! sends an empty UDP datagram to port 9 (`discard`, RFC 863) of each watched address, and reads
//! the table afterwards. An entry in the state `REACHABLE` has the time of the last answer.
//!
//! Never: decides whether a machine is on, changes the table, or sends to an address that is not
//! watched.
//!
//! Enter at [`NeighborTimes::watch`], [`NeighborTimes::answered`] and [`NeighborTimes::run`].

mod kernel;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stdx::MacAddr;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use kernel::{Neighbor, Table};

/// Interval between two datagrams to a watched address.
const ROUND: Duration = Duration::from_secs(5);
/// Maximum time for which an address is watched after the last call of [`NeighborTimes::watch`].
const WATCH_TIME: Duration = Duration::from_secs(300);
/// Maximum number of watched addresses. A further address replaces the one with the oldest call.
const WATCHED_MAX: usize = 1024;

/// Watched addresses, with the last answer of each.
#[derive(Debug, Default)]
pub struct NeighborTimes {
    watched: Mutex<HashMap<Ipv4Addr, Watched>>,
    /// Wakes the reader when the first address is watched.
    begun: Notify,
}

#[derive(Debug)]
struct Watched {
    /// Time of the last call of [`NeighborTimes::watch`].
    asked: Instant,
    answer: Option<Answer>,
}

/// Last answer from an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    mac: MacAddr,
    at: Instant,
}

impl NeighborTimes {
    /// Watches an address for the next five minutes.
    pub fn watch(&self, address: Ipv4Addr) {
        self.watch_at(address, Instant::now());
    }

    /// Returns the MAC address that last answered for a watched address, and the time since then.
    pub fn answered(&self, address: Ipv4Addr) -> Option<(MacAddr, Duration)> {
        let answer = self.watched().get(&address)?.answer?;
        Some((answer.mac, answer.at.elapsed()))
    }

    /// Probes the watched addresses and reads the answers until `shutdown`. An error is logged, and
    /// the answers stay unknown.
    pub async fn run(&self, shutdown: CancellationToken) {
        let rounds = async {
            let mut is_failing = false;
            loop {
                let result = self.round().await;
                if let Err(error) = &result
                    && !is_failing
                {
                    let error = stdx::chain(error);
                    tracing::warn!(%error, "cannot read which machines answer ARP");
                }
                is_failing = result.is_err();
                tokio::time::sleep(ROUND).await;
            }
        };
        shutdown.run_until_cancelled(rounds).await;
    }

    async fn round(&self) -> Result<(), kernel::Error> {
        let addresses = self.due(Instant::now());
        if addresses.is_empty() {
            self.begun.notified().await;
            return Ok(());
        }
        kernel::probe(&addresses)?;
        for neighbor in Table::open()?.neighbors().await? {
            self.note(&neighbor, Instant::now());
        }
        Ok(())
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<Ipv4Addr, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch_at(&self, address: Ipv4Addr, now: Instant) {
        let mut watched = self.watched();
        watched.entry(address).or_insert(Watched { asked: now, answer: None }).asked = now;
        if watched.len() > WATCHED_MAX {
            let eldest = watched.iter().min_by_key(|(_, it)| it.asked).map(|(key, _)| *key);
            eldest.and_then(|eldest| watched.remove(&eldest));
        }
        self.begun.notify_one();
    }

    /// Returns the watched addresses, and forgets those that no caller asks for any more.
    fn due(&self, now: Instant) -> Vec<Ipv4Addr> {
        let mut watched = self.watched();
        watched.retain(|_, it| now.duration_since(it.asked) <= WATCH_TIME);
        watched.keys().copied().collect()
    }

    fn note(&self, neighbor: &Neighbor, now: Instant) {
        let Some(at) = now.checked_sub(neighbor.confirmed) else { return };
        if let Some(watched) = self.watched().get_mut(&neighbor.address) {
            watched.answer = Some(Answer { mac: neighbor.mac, at });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUC: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 11);

    #[test]
    fn only_watched_addresses_have_answers_and_only_for_a_time() {
        let (times, now) = (NeighborTimes::default(), Instant::now());
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let neighbor = Neighbor { address: NUC, mac, confirmed: Duration::from_millis(10) };
        times.note(&neighbor, now);
        assert_eq!(times.answered(NUC), None, "not watched");
        times.watch_at(NUC, now);
        assert_eq!(times.answered(NUC), None, "no answer yet");
        times.note(&neighbor, now);
        let (found, age) = times.answered(NUC).unwrap();
        assert!(found == mac && age >= Duration::from_millis(10), "{age:?}");
        times.watch_at(NUC, now + Duration::from_secs(1));
        assert!(times.answered(NUC).is_some(), "another call keeps the answer");
        assert_eq!(times.due(now + WATCH_TIME), [NUC]);
        assert!(times.due(now + WATCH_TIME + Duration::from_secs(2)).is_empty());
        assert_eq!(times.answered(NUC), None);
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let (times, now) = (NeighborTimes::default(), Instant::now());
        times.watch_at(NUC, now);
        for number in 0..u32::try_from(WATCHED_MAX).unwrap() {
            times.watch_at(Ipv4Addr::from_bits(number), now + Duration::from_secs(1));
        }
        let due = times.due(now + Duration::from_secs(1));
        assert!(due.len() == WATCHED_MAX && !due.contains(&NUC), "the eldest leaves");
    }
}
