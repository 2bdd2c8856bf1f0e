//! Memory of refused BMC logins. Some BMCs lock the account or the client's address after a few
//! refused logins, and each further login extends the lock. Therefore a refused login is not
//! repeated soon.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::meta::ObjectKey;
use bmc::Endpoint;

/// Wait after the first refusal; each further refusal doubles the wait.
const FIRST: Duration = Duration::from_secs(300);
/// Maximum wait after repeated refusals.
const LONGEST: Duration = Duration::from_secs(3600);

/// Refused logins by Machine.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<HashMap<ObjectKey, RefusedLogin>>);

#[derive(Debug)]
struct RefusedLogin {
    endpoint: Endpoint,
    wait: Duration,
    /// Time of the next attempt, by the monotonic clock.
    until: Duration,
}

impl Refusals {
    fn machines(&self) -> MutexGuard<'_, HashMap<ObjectKey, RefusedLogin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the BMC refused this login, and the login must not be repeated yet. A login
    /// with another password, user name or address is allowed.
    pub fn holds(&self, machine: &ObjectKey, endpoint: &Endpoint, now: Duration) -> bool {
        let machines = self.machines();
        machines.get(machine).is_some_and(|it| it.endpoint == *endpoint && now < it.until)
    }

    /// Records a refused login, and doubles the wait if the same login was refused before.
    pub fn refused(&self, machine: &ObjectKey, endpoint: Endpoint, now: Duration) {
        let mut machines = self.machines();
        let before = machines.remove(machine).filter(|it| it.endpoint == endpoint);
        let wait = before.map_or(FIRST, |it| LONGEST.min(it.wait * 2));
        machines.insert(machine.clone(), RefusedLogin { endpoint, wait, until: now + wait });
    }

    /// Removes the record after a successful login or the deletion of the Machine.
    pub fn forget(&self, machine: &ObjectKey) {
        self.machines().remove(machine);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::meta::ObjectKey;
    use bmc::{Address, Credentials, Endpoint, Protocol};

    use super::Refusals;

    #[test]
    fn a_refused_login_is_tried_again_ever_later() {
        let (refusals, key) = (Refusals::default(), ObjectKey::new("default", "bmc"));
        let endpoint = |password: &str| Endpoint {
            address: Address::ipmi("bmc"),
            credentials: Credentials { username: "admin".into(), password: password.into() },
            protocol: Protocol::Ipmi { cipher_suite: None },
        };
        let at = Duration::from_secs;
        assert!(!refusals.holds(&key, &endpoint("a"), at(0)));
        let mut now = 0;
        for wait in [300, 600, 1200, 2400, 3600, 3600] {
            refusals.refused(&key, endpoint("a"), at(now));
            assert!(refusals.holds(&key, &endpoint("a"), at(now + wait - 1)), "{wait}");
            assert!(!refusals.holds(&key, &endpoint("b"), at(now)), "the Secret was mended");
            assert!(!refusals.holds(&key, &endpoint("a"), at(now + wait)), "{wait}");
            now += wait;
        }
        refusals.refused(&key, endpoint("b"), at(now));
        assert!(!refusals.holds(&key, &endpoint("b"), at(now + 300)), "another login");
        refusals.forget(&key);
        assert!(!refusals.holds(&key, &endpoint("b"), at(now)));
    }
}
