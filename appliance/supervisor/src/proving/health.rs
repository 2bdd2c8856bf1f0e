//! How long every proof must hold. No clock and no host.

use std::time::{Duration, Instant};

/// Without a gap, before the system is believed to work (UP-4).
pub const PROVED: Duration = Duration::from_secs(120);

/// Since when every proof is there.
#[derive(Debug, Default)]
pub struct Health(Option<Instant>);

impl Health {
    /// Every proof was there, or not, at `now`; whether that has been so for long enough.
    pub fn look(&mut self, all: bool, now: Instant) -> bool {
        if !all {
            self.0 = None;
            return false;
        }
        now.duration_since(*self.0.get_or_insert(now)) >= PROVED
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Health, PROVED};

    #[test]
    fn proofs_count_from_their_last_gap() {
        let (mut health, began) = (Health::default(), Instant::now());
        let second = Duration::from_secs(1);
        let looks = [
            (Duration::ZERO, true, false),
            (PROVED - second, true, false),
            // One was gone for a moment.
            (PROVED, false, false),
            (PROVED + second, true, false),
            (PROVED * 2, true, false),
            (PROVED * 2 + second, true, true),
            (PROVED * 3, true, true),
        ];
        for (after, all, proved) in looks {
            assert_eq!(health.look(all, began + after), proved, "after {after:?}");
        }
    }
}
