//! Chance, all of it from one seed, and none of it once the faults are over.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::time::Instant;

use super::Faults;

/// Where chance comes from.
pub struct Chance {
    rng: Mutex<Rng>,
    faults: Faults,
    ends: Instant,
}

impl Chance {
    /// Of this seed, from now on.
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self { rng: Mutex::new(Rng::with_seed(seed)), faults, ends: Instant::now() + faults.until }
    }

    fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What goes wrong now.
    pub fn faults(&self) -> Faults {
        if Instant::now() < self.ends { self.faults } else { Faults::CALM }
    }

    /// Whether something happens that does so often of a hundred times.
    pub fn of_hundred(&self, often: f64) -> bool {
        self.rng().f64() * 100.0 < often
    }

    /// One of two.
    pub fn coin(&self) -> bool {
        self.rng().bool()
    }

    /// A time up to `most`.
    pub fn upto(&self, most: Duration) -> Duration {
        most.mul_f64(self.rng().f64())
    }

    /// A time between two.
    pub fn between(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.rng().u64(least * 1000..=most * 1000))
    }

    /// A life of this mean; `None` for ever.
    pub fn life(&self, mean: Duration) -> Option<Duration> {
        let left = 1.0 - self.rng().f64();
        (!mean.is_zero()).then(|| mean.mul_f64(-left.ln()))
    }

    /// As long as anything here takes, now.
    pub async fn delay(&self) {
        tokio::time::sleep(self.upto(self.faults().delay)).await;
    }
}
