//! Times of the last requests of each machine, by kind of request.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::meta::ObjectKey;

use super::{Sighting, Source};

/// Maximum number of machines. For a further machine, the machine with the oldest request is
/// removed.
const MACHINES_MAX: usize = 4096;

/// Last requests, by Hardware and kind, as moments of the monotonic clock.
#[derive(Debug, Default)]
pub struct RequestTimes(Mutex<HashMap<ObjectKey, HashMap<Source, Duration>>>);

impl RequestTimes {
    fn machines(&self) -> MutexGuard<'_, HashMap<ObjectKey, HashMap<Source, Duration>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request at the moment `now`.
    pub fn note(&self, hardware: ObjectKey, source: Source, now: Duration) {
        let mut machines = self.machines();
        machines.entry(hardware).or_default().insert(source, now);
        if machines.len() > MACHINES_MAX {
            let newest = |times: &HashMap<Source, Duration>| times.values().max().copied();
            let eldest = machines.iter().min_by_key(|(_, times)| newest(times));
            if let Some(eldest) = eldest.map(|(key, _)| key.clone()) {
                machines.remove(&eldest);
            }
        }
    }

    /// Returns the last request of each kind.
    pub fn of(&self, hardware: &ObjectKey, now: Duration) -> Vec<Sighting> {
        let machines = self.machines();
        let times = machines.get(hardware).into_iter().flatten();
        times
            .map(|(source, at)| Sighting { source: *source, age: now.saturating_sub(*at) })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{MACHINES_MAX, RequestTimes, Sighting, Source};
    use api::meta::ObjectKey;

    #[test]
    fn the_last_request_of_each_kind_has_an_age_and_the_eldest_machine_leaves() {
        let (times, key) = (RequestTimes::default(), |name: &str| ObjectKey::new("default", name));
        let second = Duration::from_secs;
        times.note(key("nuc1"), Source::Dhcp, second(5));
        times.note(key("nuc1"), Source::Boot, second(6));
        times.note(key("nuc1"), Source::Dhcp, second(7));
        let mut found = times.of(&key("nuc1"), second(10));
        found.sort_by_key(|it| it.age);
        let sighting = |source, age| Sighting { source, age: second(age) };
        assert_eq!(found, [sighting(Source::Dhcp, 3), sighting(Source::Boot, 4)]);
        for number in 0..MACHINES_MAX {
            times.note(key(&format!("other{number}")), Source::Boot, second(20));
        }
        assert_eq!(times.of(&key("nuc1"), second(30)), []);
        assert_eq!(times.machines().len(), MACHINES_MAX);
    }
}
