//! Machines of one control plane: their health, and the choice of a machine for a connection.
//!
//! Pure: checks and connections are made elsewhere.

use std::net::SocketAddrV4;

use tokio_util::sync::CancellationToken;

/// Number of failed checks in sequence after which a machine gets no connections.
const FAILURES_MAX: u32 = 2;

/// Health of a machine, from worst to best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// The port does not accept connections, or was not checked yet.
    Down,
    /// The port accepts connections, but the API server is not ready.
    Listening,
    /// The API server is ready.
    Ready,
}

/// Machine with its health and its connections.
#[derive(Debug)]
struct Member {
    address: SocketAddrV4,
    health: Health,
    failures: u32,
    connections: usize,
    /// Cancelled when the machine is removed or goes down, to end its connections.
    session: CancellationToken,
}

/// Machine that was chosen for a connection.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Address and port of the machine.
    pub address: SocketAddrV4,
    /// Token that is cancelled when the connection must end.
    pub session: CancellationToken,
}

/// All machines of one control plane.
#[derive(Debug, Default)]
pub struct Backends(Vec<Member>);

impl Backends {
    /// Replaces the machines. The health of machines that stay is kept. Connections of removed
    /// machines end.
    pub fn set(&mut self, addresses: &[SocketAddrV4]) {
        self.0.retain(|member| {
            let stays = addresses.contains(&member.address);
            if !stays {
                member.session.cancel();
            }
            stays
        });
        for address in addresses {
            if !self.0.iter().any(|member| member.address == *address) {
                self.0.push(Member {
                    address: *address,
                    health: Health::Down,
                    failures: 0,
                    connections: 0,
                    session: CancellationToken::new(),
                });
            }
        }
    }

    /// Records the result of a check. A machine goes down after [`FAILURES_MAX`] failed checks, and
    /// its connections end: a machine without power would keep them open for minutes.
    pub fn checked(&mut self, address: SocketAddrV4, found: Health) {
        let Some(member) = self.member(address) else { return };
        if found != Health::Down {
            member.failures = 0;
            member.health = found;
            return;
        }
        member.failures = member.failures.saturating_add(1);
        if member.failures >= FAILURES_MAX && member.health != Health::Down {
            member.health = Health::Down;
            std::mem::take(&mut member.session).cancel();
        }
    }

    /// Chooses the machine for a new connection, without those of `tried`: of the machines with the
    /// best health, one with the fewest connections. `None` if no machine accepts connections. The
    /// caller must report the end of the connection by [`Backends::closed`].
    pub fn choose(&mut self, tried: &[SocketAddrV4]) -> Option<Choice> {
        let open = self.0.iter_mut().filter(|it| it.health != Health::Down);
        let open = open.filter(|it| !tried.contains(&it.address));
        let best = open.min_by_key(|it| (std::cmp::Reverse(it.health), it.connections))?;
        best.connections += 1;
        Some(Choice { address: best.address, session: best.session.clone() })
    }

    /// Records the end of a connection.
    pub fn closed(&mut self, address: SocketAddrV4) {
        if let Some(member) = self.member(address) {
            member.connections = member.connections.saturating_sub(1);
        }
    }

    /// Returns the addresses of all machines.
    pub fn addresses(&self) -> Vec<SocketAddrV4> {
        self.0.iter().map(|member| member.address).collect()
    }

    /// Returns the number of machines that get connections.
    pub fn healthy(&self) -> usize {
        let count = |health| self.0.iter().filter(|member| member.health == health).count();
        match count(Health::Ready) {
            0 => count(Health::Listening),
            ready => ready,
        }
    }

    fn member(&mut self, address: SocketAddrV4) -> Option<&mut Member> {
        self.0.iter_mut().find(|member| member.address == address)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::{Backends, Health};

    fn at(last: u8) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, last), 6443)
    }

    fn backends(health: &[(u8, Health)]) -> Backends {
        let mut backends = Backends::default();
        backends.set(&health.iter().map(|(last, _)| at(*last)).collect::<Vec<_>>());
        for (last, health) in health {
            backends.checked(at(*last), *health);
        }
        backends
    }

    fn chosen(backends: &mut Backends, tried: &[SocketAddrV4]) -> Option<u8> {
        backends.choose(tried).map(|choice| choice.address.ip().octets()[3])
    }

    #[test]
    fn the_best_health_comes_first_and_then_the_fewest_connections() {
        use Health::{Down, Listening, Ready};
        let mut all = backends(&[(1, Down), (2, Listening), (3, Ready), (4, Ready)]);
        assert_eq!(all.healthy(), 2);
        let first: Vec<_> = (0..4).map(|_| chosen(&mut all, &[])).collect();
        assert_eq!(first, [Some(3), Some(4), Some(3), Some(4)]);
        all.closed(at(4));
        assert_eq!(chosen(&mut all, &[]), Some(4));
        // A machine that is not ready is better than none.
        assert_eq!(chosen(&mut all, &[at(3), at(4)]), Some(2));
        assert_eq!(chosen(&mut all, &[at(2), at(3), at(4)]), None);
        let mut unready = backends(&[(1, Listening), (2, Down)]);
        assert_eq!((unready.healthy(), chosen(&mut unready, &[])), (1, Some(1)));
        assert_eq!(chosen(&mut Backends::default(), &[]), None);
    }

    #[test]
    fn a_machine_goes_down_after_two_failures_and_its_connections_end() {
        let mut all = backends(&[(1, Health::Ready)]);
        let session = all.choose(&[]).unwrap().session;
        all.checked(at(1), Health::Down);
        assert!(!session.is_cancelled() && all.healthy() == 1, "one lost packet changes nothing");
        all.checked(at(1), Health::Ready);
        all.checked(at(1), Health::Down);
        assert_eq!(all.healthy(), 1);
        all.checked(at(1), Health::Down);
        assert!(session.is_cancelled() && all.healthy() == 0);
        all.checked(at(1), Health::Ready);
        assert!(!all.choose(&[]).unwrap().session.is_cancelled(), "new connections are not ended");
    }

    #[test]
    fn a_change_of_the_list_keeps_the_machines_that_stay() {
        let mut all = backends(&[(1, Health::Ready), (2, Health::Ready)]);
        let session = all.choose(&[]).unwrap().session;
        all.set(&[at(2), at(3)]);
        assert!(session.is_cancelled());
        assert_eq!((all.addresses(), all.healthy()), (vec![at(2), at(3)], 1));
        assert_eq!(chosen(&mut all, &[]), Some(2));
        // Results and ends for removed machines are late, and not errors.
        all.checked(at(1), Health::Ready);
        all.closed(at(1));
        assert_eq!(all.healthy(), 1);
    }
}
