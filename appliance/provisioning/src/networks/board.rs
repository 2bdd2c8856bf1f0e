//! Board with the current state of each network service, for the status view.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::network::{Mode, Network, NetworkStatus, Phase};
use jiff::Timestamp;

/// States of all network services; clones share the data.
#[derive(Clone, Default)]
pub struct Board(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    standings: BTreeMap<String, Standing>,
    /// Reasons why services cannot run yet, by interface and service.
    waits: BTreeMap<(String, &'static str), String>,
}

/// Service of a network that cannot run yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Network interface of the service.
    pub interface: String,
    /// Name of the service, such as `DHCPv6`.
    pub service: &'static str,
    /// Reason why the service cannot run yet.
    pub why: String,
}

/// Current state of the DHCP service of one network.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// Mode in the spec of the Network.
    pub mode: Mode,
    /// Status of the Network, as last reported.
    pub status: NetworkStatus,
    /// Time since which DHCP serves this network; `None` if it does not serve.
    pub armed_since: Option<Timestamp>,
    /// Time of the last search that found no other DHCP server; `None` before it.
    pub probed: Option<Timestamp>,
}

impl Board {
    /// Stores the status of a network's DHCP service.
    pub fn put(&self, network: &Network, status: &NetworkStatus, now: Timestamp) {
        let mut board = self.board();
        let standing = board.standings.entry(network.spec.interface.clone()).or_default();
        *standing = standing.clone().then(network.spec.mode, status, now);
    }

    /// Removes the state of an interface after the deletion of its Network.
    pub fn clear(&self, interface: &str) {
        self.board().standings.remove(interface);
    }

    /// Returns the state of an interface; `None` if the interface has no DHCP service.
    pub fn of(&self, interface: &str) -> Option<Standing> {
        self.board().standings.get(interface).cloned()
    }

    /// Returns the interfaces of all networks of the box.
    pub fn interfaces(&self) -> Vec<String> {
        self.board().standings.keys().cloned().collect()
    }

    /// Stores why a service cannot run yet. A new reason is logged once.
    pub fn wait(&self, interface: &str, service: &'static str, why: String) {
        let key = (interface.to_owned(), service);
        let mut board = self.board();
        if board.waits.get(&key) != Some(&why) {
            tracing::warn!(interface, service, why, "not served yet");
            board.waits.insert(key, why);
        }
    }

    /// Removes the reason of a service that runs now.
    pub fn arrived(&self, interface: &str, service: &'static str) {
        if self.board().waits.remove(&(interface.to_owned(), service)).is_some() {
            tracing::info!(interface, service, "served now");
        }
    }

    /// Returns all services that cannot run yet.
    pub fn waits(&self) -> Vec<Wait> {
        let waits = self.board().waits.clone();
        let wait = |((interface, service), why)| Wait { interface, service, why };
        waits.into_iter().map(wait).collect()
    }

    fn board(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standing {
    fn then(self, mode: Mode, status: &NetworkStatus, now: Timestamp) -> Self {
        let serves = status.phase == Phase::Serving;
        let same = self.status.phase == Phase::Serving && self.mode == mode;
        let was_asking = self.status.phase == Phase::Probing;
        Self {
            armed_since: serves.then(|| self.armed_since.filter(|_| same).unwrap_or(now)),
            probed: if serves && was_asking { Some(now) } else { self.probed },
            mode,
            status: status.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Board, Mode, NetworkStatus, Phase, Standing, Timestamp};

    #[test]
    fn what_waits_is_told_until_it_is_there() {
        let board = Board::default();
        board.wait("eth1", "IPv6", "no address".to_owned());
        board.wait("eth1", "IPv6", "no link".to_owned());
        let [wait] = &board.waits()[..] else { panic!("{:?}", board.waits()) };
        assert_eq!((wait.interface.as_str(), wait.why.as_str()), ("eth1", "no link"));
        board.arrived("eth1", "IPv6");
        assert_eq!(board.waits(), []);
    }

    #[test]
    fn since_when_a_network_is_served() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut standing = Standing::default();
        let steps = [
            (1, Phase::Probing, Mode::Pool, None, None),
            (2, Phase::Serving, Mode::Pool, Some(2), Some(2)),
            (3, Phase::Serving, Mode::Pool, Some(2), Some(2)),
            (4, Phase::Stopped, Mode::Pool, None, Some(2)),
            (5, Phase::Probing, Mode::Pool, None, Some(2)),
            (6, Phase::Serving, Mode::Pool, Some(6), Some(6)),
            (7, Phase::Serving, Mode::Reserved, Some(7), Some(6)),
            (8, Phase::Off, Mode::Off, None, Some(6)),
        ];
        for (second, phase, mode, armed, probed) in steps {
            let status = NetworkStatus { phase, ..NetworkStatus::default() };
            standing = standing.then(mode, &status, at(second));
            let found = (standing.armed_since, standing.probed);
            assert_eq!(found, (armed.map(at), probed.map(at)), "at {second}");
        }
    }
}
