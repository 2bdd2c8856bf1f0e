//! IMDSv2 session tokens: created on request, accepted only from the same address, and required
//! only if configured ([`crate::Imdsv2`]).
//!
//! A request is authorized by its source address, with or without a token. Tokens give EC2's tools
//! the expected answer: a wrong or expired token is refused, so that they request a new one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Maximum valid tokens. At the limit, the address with most tokens loses the one that expires
/// first.
const MAX_TOKENS: usize = 8192;
/// Maximum valid tokens of one address; a new token replaces the one that expires first.
const MAX_OF_ONE: usize = 32;
/// Maximum lifetime of a token in seconds, the same as in EC2.
const MAX_LIFE: u64 = 21_600;

/// Valid tokens, each with the address it was issued to and its expiry.
#[derive(Debug, Default)]
pub(crate) struct Tokens(HashMap<String, (IpAddr, Instant)>);

impl Tokens {
    /// Creates a token for `peer` that is valid for `life` seconds. `None`: `life` is not in EC2's
    /// range, 1 to 21600.
    pub(crate) fn issue(&mut self, peer: IpAddr, life: u64, now: Instant) -> Option<String> {
        if !(1..=MAX_LIFE).contains(&life) {
            return None;
        }
        self.0.retain(|_, (_, end)| *end > now);
        if self.0.values().filter(|(owner, _)| *owner == peer).count() >= MAX_OF_ONE {
            self.drop_first(peer);
        } else if self.0.len() >= MAX_TOKENS {
            let mut counts: HashMap<IpAddr, usize> = HashMap::new();
            self.0.values().for_each(|(owner, _)| *counts.entry(*owner).or_default() += 1);
            let most = counts.into_iter().max_by_key(|(_, count)| *count);
            self.drop_first(most?.0);
        }
        let token = stdx::random_hex(28);
        self.0.insert(token.clone(), (peer, now + Duration::from_secs(life)));
        Some(token)
    }

    /// Removes the token of this address that expires first.
    fn drop_first(&mut self, of: IpAddr) {
        let own = self.0.iter().filter(|(_, (owner, _))| *owner == of);
        if let Some(token) = own.min_by_key(|(_, (_, end))| *end).map(|(token, _)| token.clone()) {
            self.0.remove(&token);
        }
    }

    /// Returns true if this token was issued to this address and has not expired.
    pub(crate) fn accept(&self, token: &str, peer: IpAddr, now: Instant) -> bool {
        self.0.get(token).is_some_and(|(owner, end)| *owner == peer && *end > now)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_OF_ONE, MAX_TOKENS, Tokens};
    use std::net::IpAddr;
    use std::time::{Duration, Instant};

    #[test]
    fn a_token_holds_for_its_machine_and_its_time() {
        let (one, two) = ("10.77.0.11".parse().unwrap(), "10.77.0.12".parse().unwrap());
        let now = Instant::now();
        let mut tokens = Tokens::default();
        let token = tokens.issue(one, 60, now).unwrap();
        assert!(tokens.accept(&token, one, now));
        assert!(!tokens.accept(&token, two, now));
        assert!(!tokens.accept("", one, now));
        assert!(!tokens.accept(&token, one, now + Duration::from_secs(60)));
        assert_eq!(tokens.issue(one, 0, now), None);
        assert_eq!(tokens.issue(one, 21_601, now), None);
    }

    #[test]
    fn a_machine_that_asks_for_ever_takes_no_token_of_another() {
        let now = Instant::now();
        let mut tokens = Tokens::default();
        let (quiet, greedy) = ("10.77.0.12".parse().unwrap(), "10.77.0.11".parse().unwrap());
        let other = tokens.issue(quiet, 10, now).unwrap();
        let first = tokens.issue(greedy, 20, now).unwrap();
        for _ in 0..10_000 {
            tokens.issue(greedy, 30, now).unwrap();
        }
        assert!(tokens.accept(&other, quiet, now));
        assert!(!tokens.accept(&first, greedy, now));
        assert_eq!(tokens.0.len(), MAX_OF_ONE + 1);
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let now = Instant::now();
        let mut tokens = Tokens::default();
        let machine = |number: usize| IpAddr::from(u32::try_from(number).unwrap().to_be_bytes());
        for number in 0..MAX_TOKENS + 5 {
            tokens.issue(machine(number / MAX_OF_ONE), 20, now).unwrap();
        }
        assert_eq!(tokens.0.len(), MAX_TOKENS);
        let last = tokens.issue(machine(1 << 20), 10, now).unwrap();
        assert!(tokens.accept(&last, machine(1 << 20), now));
        assert_eq!(tokens.0.len(), MAX_TOKENS);
    }
}
