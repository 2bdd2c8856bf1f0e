//! Memory of the logins that one BMC refused. Some BMCs lock the account or the client's address
//! after a few refused logins, and each further login extends the lock.

use std::time::Duration;

use bmc::{Endpoint, Error};
use jiff::SignedDuration;
use stdx::Clock;

/// Wait after the first refusal; each further refusal doubles the wait.
const FIRST: Duration = Duration::from_secs(300);
/// Maximum wait after repeated refusals.
const LONGEST: Duration = Duration::from_secs(3600);
/// Maximum number of refused logins of one BMC; the oldest is dropped first.
const LOGINS_MAX: usize = 16;

/// Refused logins of one BMC, oldest first.
#[derive(Debug, Default)]
pub struct Refusals(Vec<RefusedLogin>);

#[derive(Debug)]
struct RefusedLogin {
    endpoint: Endpoint,
    wait: Duration,
    /// Time of the next attempt, by the monotonic clock.
    until: Duration,
    /// Answer of the BMC.
    answer: String,
    /// Time of the next attempt, for people.
    next: String,
}

impl RefusedLogin {
    fn error(&self) -> Error {
        let address = self.endpoint.address.clone();
        Error::LoginHeld { address, answer: self.answer.clone(), next: self.next.clone() }
    }
}

impl Refusals {
    /// Returns an error if the BMC refused this login, and the login must not be repeated yet. A
    /// login with another password or user name is allowed.
    pub fn hold(&self, endpoint: &Endpoint, now: Duration) -> Option<Error> {
        let held = self.0.iter().find(|it| it.endpoint == *endpoint && now < it.until);
        held.map(RefusedLogin::error)
    }

    /// Records a refused login, and doubles the wait if the same login was refused before. Returns
    /// the error that says when the next attempt is allowed.
    pub fn refused(&mut self, endpoint: &Endpoint, error: &Error, clock: &dyn Clock) -> Error {
        let at = self.0.iter().position(|it| it.endpoint == *endpoint);
        let before = at.map(|at| self.0.remove(at));
        let wait = before.map_or(FIRST, |it| LONGEST.min(it.wait * 2));
        let next = SignedDuration::try_from(wait).ok();
        let next = next.and_then(|wait| clock.now().checked_add(wait).ok());
        if self.0.len() >= LOGINS_MAX {
            self.0.remove(0);
        }
        let login = RefusedLogin {
            endpoint: endpoint.clone(),
            wait,
            until: clock.steady() + wait,
            answer: error.sentence(),
            next: next.map(|it| it.strftime("%FT%TZ").to_string()).unwrap_or_default(),
        };
        let held = login.error();
        self.0.push(login);
        held
    }

    /// Removes the record of a login that the BMC accepted.
    pub fn forget(&mut self, endpoint: &Endpoint) {
        self.0.retain(|it| it.endpoint != *endpoint);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bmc::{Address, Credentials, Endpoint, Error, IpmiError, Protocol};
    use jiff::{SignedDuration, Timestamp};
    use stdx::{Clock as _, TestClock};

    use super::{LOGINS_MAX, Refusals};

    fn endpoint(password: &str) -> Endpoint {
        Endpoint {
            address: Address::ipmi("bmc"),
            credentials: Credentials { username: "admin".into(), password: password.into() },
            protocol: Protocol::Ipmi { cipher_suite: None },
        }
    }

    fn refusal() -> Error {
        let address = (&Address::ipmi("bmc")).into();
        IpmiError::WrongPassword { address, username: "admin".into() }.into()
    }

    #[test]
    fn a_refused_login_is_tried_again_ever_later() {
        let mut refusals = Refusals::default();
        let clock = TestClock::at(Timestamp::UNIX_EPOCH);
        let holds = |it: &Refusals, password: &str, after: u64| {
            it.hold(&endpoint(password), clock.steady() + Duration::from_secs(after)).is_some()
        };
        assert!(!holds(&refusals, "a", 0));
        for wait in [300_u32, 600, 1200, 2400, 3600, 3600] {
            refusals.refused(&endpoint("a"), &refusal(), &clock);
            assert!(holds(&refusals, "a", u64::from(wait) - 1), "{wait}");
            assert!(!holds(&refusals, "b", 0), "the Secret was corrected");
            assert!(!holds(&refusals, "a", wait.into()), "{wait}");
            clock.advance(SignedDuration::from_secs(wait.into()));
        }
        refusals.refused(&endpoint("b"), &refusal(), &clock);
        assert!(!holds(&refusals, "b", 300), "another login begins with the shortest wait");
        refusals.forget(&endpoint("b"));
        assert!(!holds(&refusals, "b", 0));
    }

    #[test]
    fn the_error_has_the_answer_and_the_time_of_the_next_attempt() {
        let (mut refusals, clock) = (Refusals::default(), TestClock::at(Timestamp::UNIX_EPOCH));
        let error = refusals.refused(&endpoint("a"), &refusal(), &clock).sentence();
        let expected = "BMC bmc:623 rejected the user name or password of user \"admin\"; the box \
                        does not repeat this login before 1970-01-01T00:05:00Z, because the BMC \
                        may lock the account: correct the Secret";
        assert_eq!(error, expected);
    }

    #[test]
    fn the_number_of_stored_logins_is_limited() {
        let (mut refusals, clock) = (Refusals::default(), TestClock::at(Timestamp::UNIX_EPOCH));
        for number in 0..=LOGINS_MAX {
            refusals.refused(&endpoint(&number.to_string()), &refusal(), &clock);
        }
        assert!(refusals.hold(&endpoint("0"), clock.steady()).is_none());
        assert!(refusals.hold(&endpoint("1"), clock.steady()).is_some());
    }
}
