//! Seeds of the simulation's tests: fixed ones, or `SIM_RUNS` seeds from `SIM_SEED` on.

use std::ops::Range;

/// Seeds of a test.
pub struct Seeds {
    /// Each seed is one run.
    pub all: Range<u64>,
    /// True when `SIM_SEED` is not set.
    fixed: bool,
}

impl Seeds {
    /// `runs` seeds from 1 on. `SIM_SEED` sets another first seed, with one run unless `SIM_RUNS`
    /// sets the number.
    pub fn new(runs: u64) -> Self {
        let seed = number("SIM_SEED");
        let first = seed.unwrap_or(1);
        let runs = number("SIM_RUNS").unwrap_or(if seed.is_some() { 1 } else { runs });
        println!("SIM_SEED={first} SIM_RUNS={runs}");
        Self { all: first..first.saturating_add(runs), fixed: seed.is_none() }
    }

    /// Returns `reached` for the fixed seeds, which must reach the expected counts. True for any
    /// other seed, which may have few faults.
    pub fn expect(&self, reached: bool) -> bool {
        reached || !self.fixed
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: expected a number, found {text:?}")))
}
