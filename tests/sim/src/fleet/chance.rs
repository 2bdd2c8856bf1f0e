//! Random decisions, all from one seed; no random faults happen after [`Faults::until`].

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::time::Instant;

use super::Faults;

/// Source of all random decisions of a run.
pub struct Chance {
    rng: Mutex<Rng>,
    seed: u64,
    faults: Faults,
    ends: Instant,
}

impl Chance {
    /// Source with this seed; the faults end `faults.until` from now.
    pub fn new(seed: u64, faults: Faults) -> Self {
        let rng = Mutex::new(Rng::with_seed(seed));
        Self { rng, seed, faults, ends: Instant::now() + faults.until }
    }

    /// Separate source for the component with this number. The runtime decides the order of draws
    /// of other components, and their draws do not change this source.
    pub fn own(&self, number: u64) -> Self {
        // Similar numbers must not result in similar seeds.
        let seed = self.seed ^ number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { rng: Mutex::new(Rng::with_seed(seed)), seed, faults: self.faults, ends: self.ends }
    }

    fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Faults in effect now; [`Faults::CALM`] after the faults have ended.
    pub fn faults(&self) -> Faults {
        if Instant::now() < self.ends { self.faults } else { Faults::CALM }
    }

    /// True with a probability of `often` percent.
    pub fn of_hundred(&self, often: f64) -> bool {
        self.rng().f64() * 100.0 < often
    }

    /// True with a probability of one half.
    pub fn coin(&self) -> bool {
        self.rng().bool()
    }

    /// Random duration up to `most`.
    pub fn upto(&self, most: Duration) -> Duration {
        most.mul_f64(self.rng().f64())
    }

    /// Random duration between two bounds in seconds.
    pub fn between(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.rng().u64(least * 1000..=most * 1000))
    }

    /// Random lifetime with this mean; `None`, an endless lifetime, if the mean is zero.
    pub fn life(&self, mean: Duration) -> Option<Duration> {
        let left = 1.0 - self.rng().f64();
        (!mean.is_zero()).then(|| mean.mul_f64(-left.ln()))
    }

    /// Times of events until the faults end, with this mean distance; zero: no events.
    pub fn moments(&self, mean: Duration) -> Vec<Duration> {
        let (mut moments, mut moment) = (Vec::new(), Duration::ZERO);
        while let Some(wait) = self.life(mean) {
            moment += wait;
            if moment >= self.faults.until {
                break;
            }
            moments.push(moment);
        }
        moments
    }

    /// Waits for a random delay of at most the current [`Faults::delay`].
    pub async fn delay(&self) {
        tokio::time::sleep(self.upto(self.faults().delay)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Chance;
    use crate::fleet::Faults;

    #[test]
    fn what_others_draw_changes_nothing_of_ones_own() {
        let draws = |others: usize| {
            let all = Chance::new(7, Faults::STORM);
            let [one, two] = [1, 2].map(|number| all.own(number));
            let draw = |own: &Chance| {
                for _ in 0..others {
                    all.coin();
                }
                own.between(0, 1000)
            };
            [draw(&one), draw(&one), draw(&two)]
        };
        assert_eq!(draws(0), draws(5));
        let [first, second, other] = draws(0);
        assert!(first != second && first != other);
    }

    #[test]
    fn moments_are_before_the_faults_end() {
        let chance = Chance::new(7, Faults::STORM);
        let moments = chance.moments(Duration::from_secs(60));
        assert!(moments.len() > 5 && moments.is_sorted());
        assert!(moments.iter().all(|moment| *moment < Faults::STORM.until));
        assert!(chance.moments(Duration::ZERO).is_empty());
    }
}
