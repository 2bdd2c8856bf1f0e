//! Ages of stored times, measured with a monotonic clock.
//!
//! Times of day in an object survive a restart of the box. After the first observation of such a
//! time, its age grows with the monotonic clock. Setting the clock, forward or back by years,
//! therefore changes no age. Ages are kept in memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::meta::ObjectKey;
use jiff::Timestamp;
use stdx::Clock;

/// Ages of the times in all objects of a reconciler.
#[derive(Debug, Default)]
pub struct Ages(Mutex<HashMap<ObjectKey, LastLook>>);

/// Times of an object at its last observation.
#[derive(Debug, Default)]
struct LastLook {
    /// Monotonic time of the observation.
    at: Duration,
    moments: HashMap<Timestamp, Duration>,
}

/// Times of one object, each converted to a moment of the monotonic clock [`Clock::steady`].
#[derive(Debug, Clone, Default)]
pub struct Moments {
    now: Duration,
    moments: HashMap<Timestamp, Duration>,
}

impl Moments {
    /// Returns the moment of the observation.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Returns the moment of a time. A time that was not observed counts as older than any moment.
    pub fn at(&self, time: Timestamp) -> Duration {
        self.moments.get(&time).copied().unwrap_or_default()
    }

    /// Returns the time from `moment` to the observation.
    pub fn since(&self, moment: Duration) -> Duration {
        self.now.saturating_sub(moment)
    }
}

impl Ages {
    fn objects(&self) -> MutexGuard<'_, HashMap<ObjectKey, LastLook>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Observes the times of an object and returns their moments. A time keeps its first moment.
    pub fn look(
        &self,
        key: &ObjectKey,
        times: impl IntoIterator<Item = Timestamp>,
        clock: &dyn Clock,
    ) -> Moments {
        let (time_of_day, now) = (clock.now(), clock.steady());
        let mut objects = self.objects();
        let before = objects.remove(key).unwrap_or_default();
        let moment = |time: Timestamp| {
            // A new time was written after the last look, or by an earlier run of the box.
            let age = Duration::try_from(time_of_day.duration_since(time)).unwrap_or_default();
            let first = now.saturating_sub(age).max(before.at);
            (time, before.moments.get(&time).copied().unwrap_or(first))
        };
        let moments: HashMap<_, _> = times.into_iter().map(moment).collect();
        objects.insert(key.clone(), LastLook { at: now, moments: moments.clone() });
        Moments { now, moments }
    }

    /// Removes the times of an object that was deleted or has ended.
    pub fn forget(&self, key: &ObjectKey) {
        self.objects().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use api::meta::ObjectKey;
    use jiff::{SignedDuration, Timestamp};
    use stdx::{Clock as _, TestClock};

    use super::Ages;

    #[test]
    fn setting_the_clock_changes_no_age() {
        let clock = TestClock::at(Timestamp::UNIX_EPOCH);
        let (ages, key) = (Ages::default(), ObjectKey::new("default", "wf"));
        clock.advance(SignedDuration::from_secs(1000));
        let first = clock.now();
        let age = |time| {
            let moments = ages.look(&key, [first, time], &clock);
            [first, time].map(|it| moments.since(moments.at(it)).as_secs())
        };
        assert_eq!(age(first), [0, 0]);
        for hours in [8, -8, 24 * 365 * 30] {
            clock.set(SignedDuration::from_hours(hours));
            assert_eq!(age(first)[0], 0, "{hours}");
        }
        clock.advance(SignedDuration::from_secs(60));
        // This time was written after the last look, regardless of the clock's setting.
        let new = clock.now();
        clock.set(SignedDuration::from_hours(8));
        assert_eq!(age(new), [60, 60]);
        clock.advance(SignedDuration::from_secs(5));
        assert_eq!(age(new), [65, 65]);
    }

    #[test]
    fn nothing_is_older_than_this_run_of_the_box() {
        let clock = TestClock::at(Timestamp::UNIX_EPOCH);
        clock.set(SignedDuration::from_hours(24 * 365));
        clock.advance(SignedDuration::from_secs(30));
        let key = ObjectKey::new("default", "wf");
        let moments = Ages::default().look(&key, [Timestamp::UNIX_EPOCH], &clock);
        assert_eq!(moments.since(moments.at(Timestamp::UNIX_EPOCH)).as_secs(), 30);
        let future = clock.now().checked_add(SignedDuration::from_hours(1)).unwrap();
        let moments = Ages::default().look(&key, [future], &clock);
        assert_eq!(moments.since(moments.at(future)).as_secs(), 0);
    }
}
