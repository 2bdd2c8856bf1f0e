//! NTP servers that refuse all queries, or too frequent queries (RFC 5905 section 7.4).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use stdx::Backoff;
use tokio::time::Instant;

/// First and longest wait for a server that sends RATE.
const RATE: (Duration, Duration) = (Duration::from_mins(34), Duration::from_hours(36));

/// Servers that refused a query, with the earliest time of the next query.
#[derive(Debug, Default)]
pub struct Refusals(HashMap<SocketAddr, Refusal>);

#[derive(Debug)]
enum Refusal {
    /// The server is never queried again, after DENY or RSTR.
    Denied,
    /// The server is not queried before the time, after RATE.
    Rated(Backoff, Instant),
}

impl Refusals {
    /// Records the kiss code `word` of a server.
    pub fn add(&mut self, server: SocketAddr, word: &str, now: Instant) {
        let before = self.0.remove(&server);
        let refused = match (word, before) {
            ("DENY" | "RSTR", _) | (_, Some(Refusal::Denied)) => Refusal::Denied,
            (_, Some(Refusal::Rated(mut wait, _))) => {
                let until = now + wait.next_wait();
                Refusal::Rated(wait, until)
            }
            (_, None) => {
                let mut wait = Backoff::new(RATE.0, RATE.1);
                let until = now + wait.next_wait();
                Refusal::Rated(wait, until)
            }
        };
        self.0.insert(server, refused);
    }

    /// Returns true if the server may be queried at `now`.
    pub fn permit(&self, server: SocketAddr, now: Instant) -> bool {
        match self.0.get(&server) {
            None => true,
            Some(Refusal::Denied) => false,
            Some(Refusal::Rated(_, until)) => now >= *until,
        }
    }

    /// Removes all refusals, so that each server may be queried once more after a list change.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::time::Instant;

    use super::{RATE, Refusals};

    #[test]
    fn a_refusal_is_obeyed() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let [one, two] = [1, 2].map(|last| SocketAddr::from(([10, 0, 0, last], 123)));
        refusals.add(one, "DENY", now);
        refusals.add(two, "RATE", now);
        assert!(!refusals.permit(one, now + RATE.1 * 10));
        assert!(!refusals.permit(two, now) && refusals.permit(two, now + RATE.0));
        refusals.add(two, "RATE", now);
        assert!(!refusals.permit(two, now + RATE.0) && refusals.permit(two, now + RATE.0 * 2));
        refusals.add(one, "RATE", now);
        assert!(!refusals.permit(one, now + RATE.1 * 10), "denied is denied");
        refusals.clear();
        assert!(refusals.permit(one, now) && refusals.permit(two, now));
    }
}
