//! Time window in which a machine may have its user data, and record of phone-homes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use crate::config::UserData;
use crate::{Config, Instance, PhoneHome, Provisioning};

/// Maximum machines whose phone-home is remembered. A new one replaces the machine with the oldest
/// phone-home, whose window then ends only by `user_data_window_secs`.
const MAX_MACHINES: usize = 16_384;
/// Time in which an identical phone-home is dropped: cloud-init repeats one whose response it
/// missed.
const REPEATS: Duration = Duration::from_secs(60);

/// Returns true if a machine may have its user data now. `home` is the time since its first
/// phone-home, if any.
pub(crate) fn is_open(config: &Config, provisioning: Provisioning, home: Option<Duration>) -> bool {
    match (config.user_data, provisioning) {
        (UserData::Address, _) | (_, Provisioning::Underway) => true,
        (UserData::Window, Provisioning::Unrecorded) => false,
        (UserData::Window, Provisioning::Ended { ago }) => {
            // A phone-home from before the installation was the old system's.
            let settled = home.is_some_and(|since| since <= ago && since > config.grace());
            ago <= config.window() && !settled
        }
    }
}

/// First phone-homes, by hardware.
#[derive(Debug, Default)]
pub(crate) struct PhoneHomes(HashMap<String, FirstPhoneHome>);

#[derive(Debug)]
struct FirstPhoneHome {
    /// Time of the first phone-home since the machine's last installation.
    first: Instant,
    last: Instant,
    hash: u64,
}

impl PhoneHomes {
    /// Records a phone-home. Returns false for a repetition.
    pub(crate) fn note(&mut self, instance: &Instance, event: &PhoneHome, now: Instant) -> bool {
        let mut hasher = DefaultHasher::new();
        event.hash(&mut hasher);
        let hash = hasher.finish();
        let mut first = now;
        if let Some(before) = self.0.get_mut(&instance.hardware) {
            if before.hash == hash && now.duration_since(before.last) < REPEATS {
                before.last = now;
                return false;
            }
            if !installed_since(before.first, instance.provisioning, now) {
                first = before.first;
            }
        } else if self.0.len() >= MAX_MACHINES {
            let oldest = self.0.iter().min_by_key(|(_, home)| home.last);
            if let Some(oldest) = oldest.map(|(hardware, _)| hardware.clone()) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(instance.hardware.clone(), FirstPhoneHome { first, last: now, hash });
        true
    }

    /// Returns the time since a machine's first phone-home; `None` if none is recorded.
    pub(crate) fn since(&self, hardware: &str, now: Instant) -> Option<Duration> {
        self.0.get(hardware).map(|home| now.duration_since(home.first))
    }
}

fn installed_since(then: Instant, provisioning: Provisioning, now: Instant) -> bool {
    match provisioning {
        Provisioning::Unrecorded => false,
        Provisioning::Underway => true,
        Provisioning::Ended { ago } => now.duration_since(then) > ago,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{MAX_MACHINES, PhoneHomes, REPEATS, is_open};
    use crate::config::UserData;
    use crate::{Config, Instance, PhoneHome, Provisioning};

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn ended(ago: u64) -> Provisioning {
        Provisioning::Ended { ago: secs(ago) }
    }

    fn machine(hardware: &str, provisioning: Provisioning) -> Instance {
        Instance { hardware: hardware.to_owned(), provisioning, ..Instance::default() }
    }

    fn phone_home(form: &[u8]) -> PhoneHome {
        PhoneHome::read("10.77.0.11".parse().unwrap(), "a".to_owned(), form)
    }

    #[test]
    fn the_window_ends_with_its_time_or_a_while_after_the_phone_home() {
        let config = Config::default();
        for (provisioning, home, open) in [
            (Provisioning::Unrecorded, None, false),
            (Provisioning::Unrecorded, Some(1), false),
            (Provisioning::Underway, None, true),
            (Provisioning::Underway, Some(9000), true),
            (ended(0), None, true),
            (ended(3600), None, true),
            (ended(3601), None, false),
            (ended(900), Some(300), true),
            (ended(900), Some(301), false),
            (ended(900), Some(900), false),
            // It phoned home before it was installed anew.
            (ended(900), Some(901), true),
        ] {
            let shown = is_open(&config, provisioning, home.map(secs));
            assert_eq!(shown, open, "{provisioning:?} {home:?}");
            let always = Config { user_data: UserData::Address, ..Config::default() };
            assert!(is_open(&always, provisioning, home.map(secs)));
        }
    }

    #[test]
    fn a_repetition_is_told_once_and_the_first_call_counts() {
        let (mut homes, start) = (PhoneHomes::default(), Instant::now());
        let (one, two) = (phone_home(b"hostname=one"), phone_home(b"hostname=two"));
        assert!(homes.note(&machine("a", ended(10)), &one, start));
        assert!(!homes.note(&machine("a", ended(11)), &one, start + secs(1)));
        assert!(homes.note(&machine("a", ended(12)), &two, start + secs(2)));
        let later = start + secs(2) + REPEATS;
        assert!(homes.note(&machine("a", ended(72)), &two, later));
        assert_eq!(homes.since("a", later), Some(REPEATS + secs(2)));
        assert_eq!(homes.since("b", later), None);
        // Installed anew, it has not phoned home yet.
        let anew = later + secs(100);
        assert!(homes.note(&machine("a", ended(5)), &two, anew));
        assert_eq!(homes.since("a", anew), Some(secs(0)));
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let (mut homes, start, one) = (PhoneHomes::default(), Instant::now(), phone_home(b""));
        for number in 0..=MAX_MACHINES {
            let now = start + secs(number as u64);
            assert!(homes.note(&machine(&number.to_string(), ended(1)), &one, now));
        }
        assert_eq!(homes.0.len(), MAX_MACHINES);
        assert_eq!(homes.since("0", start), None);
    }
}
