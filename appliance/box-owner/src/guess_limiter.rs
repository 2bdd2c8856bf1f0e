//! Limits of wrong guesses, by address (AU-4, FB-3). No clock: the caller passes the time.
//!
//! A guessing address cannot lock out other addresses. The limits of one address apply first. The
//! limit over all addresses applies only to addresses with a recent wrong guess.
//!
//! An IPv6 subscriber has a whole /64 network, whose addresses share their guesses. All machines of
//! a link share it too, so an address whose last guess was correct counts by itself from then on.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// Period of the limits `each` and `all`.
pub const MINUTE: Duration = Duration::from_secs(60);
/// Maximum number of stored addresses; the address with the oldest wrong guess is dropped.
pub const ADDRESSES_MAX: usize = 1024;

/// Maximum numbers of wrong guesses.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum for one address in a minute.
    pub each: usize,
    /// Maximum for one address until [`GuessLimiter::clear`].
    pub ever: usize,
    /// Maximum for all addresses together in a minute.
    pub all: usize,
}

/// Decision about a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuessPermission {
    /// The address may guess.
    Allowed,
    /// The address must wait this many seconds.
    Wait(u64),
    /// The address may not guess again until [`GuessLimiter::clear`].
    Never,
}

/// Class of an address by its last guesses; a lower value is served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The last guess was correct.
    Proven,
    /// The address has not guessed yet.
    New,
    /// The last guess was wrong, less than a minute ago.
    Guesser,
}

/// Wrong guesses by address.
pub struct GuessLimiter {
    limits: Limits,
    addresses: HashMap<IpAddr, AddressHistory>,
    /// Times of the last wrong guesses of all addresses, oldest first.
    recent: VecDeque<Duration>,
}

#[derive(Default)]
struct AddressHistory {
    /// Times of the last wrong guesses, oldest first.
    recent: VecDeque<Duration>,
    wrong: usize,
    was_right: bool,
}

impl GuessLimiter {
    /// Creates a limiter without any guess.
    pub fn new(limits: Limits) -> Self {
        Self { limits, addresses: HashMap::new(), recent: VecDeque::new() }
    }

    /// Decides if the address may guess at `now`, a time of the monotonic clock.
    pub fn leave(&mut self, from: IpAddr, now: Duration) -> GuessPermission {
        forget(&mut self.recent, now);
        let are_many = self.recent.len() >= self.limits.all;
        let Some(past) = self.past(from, now) else { return GuessPermission::Allowed };
        let (recent, wrong) = (past.recent.len(), past.wrong);
        let first = past.recent.front().copied();
        match first {
            _ if wrong >= self.limits.ever => GuessPermission::Never,
            Some(first) if recent >= self.limits.each || are_many => {
                GuessPermission::Wait(wait(first, now))
            }
            _ => GuessPermission::Allowed,
        }
    }

    /// Returns the class of the address.
    pub fn standing(&mut self, from: IpAddr, now: Duration) -> Standing {
        match self.past(from, now) {
            Some(past) if !past.recent.is_empty() => Standing::Guesser,
            Some(past) if past.was_right => Standing::Proven,
            _ => Standing::New,
        }
    }

    fn past(&mut self, from: IpAddr, now: Duration) -> Option<&mut AddressHistory> {
        let key = self.key(from);
        let past = self.addresses.get_mut(&key)?;
        forget(&mut past.recent, now);
        Some(past)
    }

    /// Records a wrong guess.
    pub fn wrong(&mut self, from: IpAddr, now: Duration) {
        let limits = self.limits;
        let past = self.remembered(self.key(from));
        past.wrong += 1;
        keep(&mut past.recent, now, limits.each);
        keep(&mut self.recent, now, limits.all);
    }

    /// Returns the number of wrong guesses that the address may still make.
    pub fn left(&self, from: IpAddr) -> usize {
        let wrong = self.addresses.get(&self.key(from)).map_or(0, |past| past.wrong);
        self.limits.ever.saturating_sub(wrong)
    }

    /// Records a correct guess. `counted`: the guess was recorded as wrong before its check.
    pub fn right(&mut self, from: IpAddr, counted: bool) {
        if counted {
            self.take_back(from);
        }
        self.remembered(from.to_canonical()).was_right = true;
    }

    /// Removes the last wrong guess of the address, because it could not be checked.
    pub fn take_back(&mut self, from: IpAddr) {
        let past = self.remembered(self.key(from));
        past.wrong = past.wrong.saturating_sub(1);
        past.recent.pop_back();
        self.recent.pop_back();
    }

    /// Returns the address under which the guesses of `from` are counted.
    fn key(&self, from: IpAddr) -> IpAddr {
        let own = from.to_canonical();
        let was_right = self.addresses.get(&own).is_some_and(|past| past.was_right);
        if was_right { own } else { network(own) }
    }

    fn remembered(&mut self, from: IpAddr) -> &mut AddressHistory {
        if self.addresses.len() >= ADDRESSES_MAX && !self.addresses.contains_key(&from) {
            let age = |past: &AddressHistory| (past.was_right, past.recent.back().copied());
            let oldest = self.addresses.iter().min_by_key(|(_, past)| age(past));
            let oldest = oldest.map(|(from, _)| *from);
            oldest.and_then(|from| self.addresses.remove(&from));
        }
        self.addresses.entry(from).or_default()
    }

    /// Removes all records, because the secret has changed.
    pub fn clear(&mut self) {
        *self = Self::new(self.limits);
    }
}

fn forget(recent: &mut VecDeque<Duration>, now: Duration) {
    while recent.front().is_some_and(|at| now.saturating_sub(*at) >= MINUTE) {
        recent.pop_front();
    }
}

/// Adds `now` to `recent`, and keeps only the last `most` times.
fn keep(recent: &mut VecDeque<Duration>, now: Duration, most: usize) {
    if recent.len() >= most {
        recent.pop_front();
    }
    recent.push_back(now);
}

/// Returns the seconds until `first` is a minute ago; at least 1.
fn wait(first: Duration, now: Duration) -> u64 {
    (first + MINUTE).saturating_sub(now).as_secs().max(1)
}

/// Returns the address of one subscriber: for IPv6, the /64 network.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::{ADDRESSES_MAX, GuessLimiter, GuessPermission, Limits, Standing};
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);
    const LIMITS: Limits = Limits { each: 5, ever: 8, all: 20 };

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn one_address_has_a_minute_s_guesses_and_no_more_than_all_of_its_own() {
        let (mut guesses, one) = (GuessLimiter::new(LIMITS), "2001:db8::1".parse().unwrap());
        for nth in 0..5 {
            assert_eq!(guesses.leave(one, SECOND * nth), GuessPermission::Allowed);
            guesses.wrong(one, SECOND * nth);
        }
        let same_network = "2001:db8::2".parse().unwrap();
        assert_eq!(guesses.leave(same_network, SECOND * 9), GuessPermission::Wait(51));
        assert_eq!(
            guesses.leave("2001:db8:0:1::1".parse().unwrap(), SECOND * 9),
            GuessPermission::Allowed
        );
        assert_eq!(guesses.leave(one, SECOND * 60), GuessPermission::Allowed);
        assert_eq!(guesses.left(same_network), 3);
        (0..3).for_each(|_| guesses.wrong(one, SECOND * 60));
        assert_eq!(guesses.leave(one, SECOND * 1000), GuessPermission::Never);
        guesses.clear();
        assert_eq!(guesses.leave(one, SECOND * 1000), GuessPermission::Allowed);
    }

    #[test]
    fn a_neighbor_on_the_link_locks_out_no_one_who_was_right() {
        let mut guesses = GuessLimiter::new(LIMITS);
        let (owner, neighbor) = ("fe80::1".parse().unwrap(), "fe80::2".parse().unwrap());
        guesses.wrong(owner, SECOND);
        guesses.right(owner, true);
        (0..8).for_each(|_| guesses.wrong(neighbor, SECOND));
        assert_eq!(guesses.leave(neighbor, SECOND), GuessPermission::Never);
        assert_eq!(guesses.leave(owner, SECOND), GuessPermission::Allowed);
        assert_eq!(guesses.standing(owner, SECOND), Standing::Proven);
        assert_eq!(guesses.standing(neighbor, SECOND), Standing::Guesser);
        // Being right once does not free later wrong guesses.
        (0..5).for_each(|_| guesses.wrong(owner, SECOND));
        assert!(matches!(guesses.leave(owner, SECOND), GuessPermission::Wait(_)));
    }

    #[test]
    fn many_who_guess_keep_no_newcomer_out() {
        let mut guesses = GuessLimiter::new(LIMITS);
        for number in 0..2 * u32::try_from(ADDRESSES_MAX).unwrap() {
            guesses.wrong(address(number), SECOND);
        }
        assert_eq!(guesses.addresses.len(), ADDRESSES_MAX);
        let last = address(2 * u32::try_from(ADDRESSES_MAX).unwrap() - 1);
        assert_eq!(guesses.leave(last, SECOND * 2), GuessPermission::Wait(59));
        assert_eq!(guesses.leave(address(1 << 24), SECOND * 2), GuessPermission::Allowed);
    }

    #[test]
    fn an_address_that_was_right_stands_before_all_others() {
        let (mut guesses, one, other) = (GuessLimiter::new(LIMITS), address(1), address(2));
        guesses.wrong(one, SECOND);
        assert_eq!(guesses.standing(one, SECOND), Standing::Guesser);
        guesses.right(one, true);
        assert_eq!(guesses.standing(one, SECOND), Standing::Proven);
        assert_eq!(guesses.standing(other, SECOND), Standing::New);
        guesses.wrong(one, SECOND);
        assert_eq!(guesses.standing(one, SECOND), Standing::Guesser);
        assert_eq!(guesses.standing(one, SECOND * 61), Standing::Proven);
        assert!(Standing::Proven < Standing::New && Standing::New < Standing::Guesser);
    }
}
