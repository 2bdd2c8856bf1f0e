//! Limits the number of connections. At the limit, the network with most connections loses its
//! oldest one, so that no network excludes others.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::Network;

/// Maximum numbers of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum connections of all networks together.
    pub total: usize,
    /// Maximum connections of one [`Network`].
    pub each: usize,
}

/// Connections of a listener; clones share the counts.
#[derive(Debug, Clone)]
pub struct Connections {
    limits: Limits,
    table: Arc<Mutex<Table>>,
}

/// Connections by their network, the oldest first.
#[derive(Debug, Default)]
struct Table {
    networks: HashMap<Network, BTreeMap<u64, CancellationToken>>,
    total: usize,
    number: u64,
}

/// Place of one connection among the permitted ones; dropping it frees the place.
#[derive(Debug)]
pub struct Place {
    network: Network,
    number: u64,
    ended: CancellationToken,
    table: Arc<Mutex<Table>>,
}

fn locked(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connections {
    /// Creates an empty set of connections with these limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, table: Arc::default() }
    }

    /// Returns a place for a connection from `address`. A network at its own limit loses its oldest
    /// connection. `None`: all places are taken, and no other network has more connections than
    /// this one would have.
    pub fn enter(&self, address: IpAddr) -> Option<Place> {
        let network = Network::of(address);
        let mut table = locked(&self.table);
        let has = table.networks.get(&network).map_or(0, BTreeMap::len);
        if has >= self.limits.each {
            table.end_oldest(network);
        } else if table.total >= self.limits.total {
            let (most, number) = table.most()?;
            if number <= has + 1 {
                return None;
            }
            table.end_oldest(most);
        }
        let (number, ended) = (table.number, CancellationToken::new());
        table.number += 1;
        table.total += 1;
        table.networks.entry(network).or_default().insert(number, ended.clone());
        Some(Place { network, number, ended, table: Arc::clone(&self.table) })
    }
}

impl Table {
    /// Returns the network with most connections, and their number.
    fn most(&self) -> Option<(Network, usize)> {
        let numbers = self.networks.iter().map(|(network, places)| (*network, places.len()));
        numbers.max_by_key(|(network, number)| (*number, *network))
    }

    fn end_oldest(&mut self, network: Network) {
        let places = self.networks.get(&network);
        if let Some((number, ended)) = places.and_then(BTreeMap::first_key_value) {
            let number = *number;
            ended.cancel();
            self.remove(network, number);
        }
    }

    fn remove(&mut self, network: Network, number: u64) {
        let Some(places) = self.networks.get_mut(&network) else { return };
        self.total -= usize::from(places.remove(&number).is_some());
        if places.is_empty() {
            self.networks.remove(&network);
        }
    }
}

impl Place {
    /// Returns a token that is cancelled when the connection must end at once, because another one
    /// needs its place.
    pub fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.table).remove(self.network, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::{Connections, Limits, locked};

    fn ip(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 77, 0, last).into()
    }

    #[test]
    fn a_network_that_holds_most_makes_room_for_others() {
        let connections = Connections::new(Limits { total: 6, each: 4 });
        let greedy: Vec<_> = (0..4).map(|_| connections.enter(ip(1)).unwrap()).collect();
        let others = [2, 3].map(|last| connections.enter(ip(last)).unwrap());
        let newcomer = connections.enter(ip(4)).unwrap();
        assert!(greedy[0].ended().is_cancelled(), "the oldest of the one with most");
        assert!(greedy[1..].iter().chain(&others).all(|it| !it.ended().is_cancelled()));
        assert!(connections.enter(ip(1)).is_none(), "it takes no place of another network");
        assert!(others.iter().chain([&newcomer]).all(|it| !it.ended().is_cancelled()));
    }

    #[test]
    fn a_network_over_its_own_limit_gives_up_its_own() {
        let connections = Connections::new(Limits { total: 100, each: 2 });
        let places: Vec<_> = (0..3).map(|_| connections.enter(ip(1)).unwrap()).collect();
        let ended: Vec<bool> = places.iter().map(|it| it.ended().is_cancelled()).collect();
        assert_eq!(ended, [true, false, false]);
    }

    #[test]
    fn nobody_is_sent_away_for_one_who_has_as_many() {
        let connections = Connections::new(Limits { total: 3, each: 2 });
        let places = [1, 2, 3].map(|last| connections.enter(ip(last)).unwrap());
        assert!(connections.enter(ip(4)).is_none());
        assert!(connections.enter(ip(1)).is_none());
        assert!(places.iter().all(|it| !it.ended().is_cancelled()));
        drop(places);
        let table = locked(&connections.table);
        assert!(table.networks.is_empty() && table.total == 0);
    }
}
