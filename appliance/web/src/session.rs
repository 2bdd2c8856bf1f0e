//! Who is logged in, and who has guessed too often (AU-4). In memory: a restart logs everybody out.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::claim::{MINUTE, wait};

/// Sessions at once; the one that was used least lately goes.
pub const SESSIONS_MAX: usize = 64;
/// How long a session lives that nobody uses.
pub const IDLE: Duration = Duration::from_secs(12 * 3600);
/// Wrong passphrases of one address in a minute.
pub const WRONG_A_MINUTE: usize = 10;
/// Addresses that are remembered for that; the one that erred least lately is forgotten.
pub const ADDRESSES_MAX: usize = 1024;

/// The sessions, by the hash of their token: a lookup then tells nothing about tokens.
#[derive(Default)]
pub struct Sessions(HashMap<[u8; 32], Session>);

struct Session {
    used: Duration,
    csrf: String,
}

impl Sessions {
    /// Begin one. `token` and `csrf` are chance in hexadecimal.
    pub fn begin(&mut self, token: &str, csrf: String, now: Duration) {
        self.0.retain(|_, session| now.saturating_sub(session.used) < IDLE);
        if self.0.len() >= SESSIONS_MAX {
            let oldest = self.0.iter().min_by_key(|(_, it)| it.used).map(|(key, _)| *key);
            oldest.and_then(|key| self.0.remove(&key));
        }
        self.0.insert(Sha256::digest(token).into(), Session { used: now, csrf });
    }

    /// The secret of this session's forms; `None` when there is no such session.
    pub fn find(&mut self, token: &str, now: Duration) -> Option<String> {
        let key: [u8; 32] = Sha256::digest(token).into();
        let session = self.0.get_mut(&key)?;
        if now.saturating_sub(session.used) >= IDLE {
            self.0.remove(&key);
            return None;
        }
        session.used = now;
        Some(session.csrf.clone())
    }

    /// Whether there is one; not a use of it.
    pub fn lives(&self, token: &str, now: Duration) -> bool {
        let session = self.0.get(&<[u8; 32]>::from(Sha256::digest(token)));
        session.is_some_and(|session| now.saturating_sub(session.used) < IDLE)
    }

    /// End one.
    pub fn end(&mut self, token: &str) {
        self.0.remove(&<[u8; 32]>::from(Sha256::digest(token)));
    }
}

/// Wrong passphrases by address.
#[derive(Default)]
pub struct Guesses(HashMap<IpAddr, VecDeque<Duration>>);

impl Guesses {
    /// Seconds that this address has to wait; `None`: it may try.
    pub fn wait(&mut self, from: IpAddr, now: Duration) -> Option<u64> {
        let times = self.0.get_mut(&network(from))?;
        while times.front().is_some_and(|at| now.saturating_sub(*at) >= MINUTE) {
            times.pop_front();
        }
        (times.len() >= WRONG_A_MINUTE).then(|| wait(times.front(), now))
    }

    /// It was wrong.
    pub fn wrong(&mut self, from: IpAddr, now: Duration) {
        if self.0.len() >= ADDRESSES_MAX && !self.0.contains_key(&network(from)) {
            let oldest = self.0.iter().min_by_key(|(_, times)| times.back().copied());
            let oldest = oldest.map(|(from, _)| *from);
            oldest.and_then(|from| self.0.remove(&from));
        }
        self.0.entry(network(from)).or_default().push_back(now);
    }

    /// The last one was right after all.
    pub fn right(&mut self, from: IpAddr) {
        if let Some(times) = self.0.get_mut(&network(from)) {
            times.pop_back();
        }
    }
}

/// Who has one IPv6 address has its /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::{ADDRESSES_MAX, Guesses, IDLE, SESSIONS_MAX, Sessions};
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_session_ends_unused_or_crowded_out() {
        let mut sessions = Sessions::default();
        sessions.begin("a", "forms".to_owned(), SECOND);
        assert_eq!(sessions.find("a", IDLE).as_deref(), Some("forms"));
        assert_eq!(sessions.find("b", IDLE), None);
        assert_eq!(sessions.find("a", IDLE + IDLE), None);
        for nth in 0..=SESSIONS_MAX {
            let now = SECOND * u32::try_from(nth).unwrap();
            sessions.begin(&nth.to_string(), String::new(), now);
        }
        assert_eq!(sessions.find("0", SECOND), None);
        assert!(sessions.find("1", SECOND).is_some());
        sessions.end("1");
        assert_eq!(sessions.find("1", SECOND), None);
    }

    #[test]
    fn ten_wrong_ones_a_minute_and_address() {
        let (mut guesses, one) = (Guesses::default(), "2001:db8::1".parse().unwrap());
        for nth in 0..10 {
            assert_eq!(guesses.wait(one, SECOND * nth), None);
            guesses.wrong(one, SECOND * nth);
        }
        assert_eq!(guesses.wait("2001:db8::2".parse().unwrap(), SECOND * 9), Some(51));
        assert_eq!(guesses.wait("2001:db8:0:1::1".parse().unwrap(), SECOND * 9), None);
        assert_eq!(guesses.wait(one, SECOND * 60), None);
        for nth in 0..2 * u32::try_from(ADDRESSES_MAX).unwrap() {
            guesses.wrong(IpAddr::V4(Ipv4Addr::from_bits(nth)), SECOND * 100);
        }
        assert_eq!(guesses.0.len(), ADDRESSES_MAX);
    }
}
