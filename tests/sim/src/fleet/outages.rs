//! Outages and their times. All are drawn at the start, so that one seed always has the same
//! outages.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use stdx::Clock;
use tokio::time::Instant;

use super::Faults;
use super::chance::Chance;

/// Maximum duration of a full disk and of silent name servers.
const LONGEST: Duration = Duration::from_secs(120);
/// Maximum time that a management controller is dead.
const DEAD: Duration = Duration::from_secs(600);
/// Maximum difference of the box's clock from virtual time, in hours, forward or back.
const HOURS: u64 = 24;

type Window = Range<Duration>;

/// Outages, as times from the start.
#[derive(Debug, Default)]
pub struct Outages {
    full: Vec<Window>,
    names: Vec<Window>,
    dead: BTreeMap<usize, Window>,
    /// Changes of the box's clock: time of the change, and the difference from virtual time after
    /// the change.
    steps: Vec<(Duration, SignedDuration)>,
}

impl Outages {
    /// Draws the outages of a run.
    pub fn draw(chance: &Chance, faults: &Faults, machines: impl Iterator<Item = usize>) -> Self {
        let windows = |mean| -> Vec<Window> {
            let moments = chance.moments(mean);
            moments.into_iter().map(|it| it..it + chance.upto(LONGEST)).collect()
        };
        let (full, names) = (windows(faults.full), windows(faults.names));
        let dead = machines.filter(|_| chance.of_hundred(faults.dead)).map(|machine| {
            let begins = chance.upto(faults.until);
            (machine, begins..begins + chance.upto(DEAD))
        });
        let dead = dead.collect();
        let step = |moment| {
            let off = SignedDuration::try_from(chance.between(0, HOURS * 3600));
            let off = off.unwrap_or_default();
            (moment, if chance.coin() { off } else { -off })
        };
        let steps = chance.moments(faults.clock).into_iter().map(step).collect();
        Self { full, names, dead, steps }
    }

    /// Number of outages of all kinds.
    pub fn count(&self) -> usize {
        self.full.len() + self.names.len() + self.dead.len() + self.steps.len()
    }

    /// True when the box's disk is full.
    pub fn is_full(&self, at: Duration) -> bool {
        self.full.iter().any(|window| window.contains(&at))
    }

    /// True when the box can reach a machine's management controller.
    pub fn reaches(&self, machine: usize, at: Duration) -> bool {
        let is_dead = self.dead.get(&machine).is_some_and(|window| window.contains(&at));
        !is_dead && !self.names.iter().any(|window| window.contains(&at))
    }

    fn clock_is_off(&self, at: Duration) -> SignedDuration {
        let last = self.steps.iter().take_while(|(moment, _)| *moment <= at).last();
        last.map(|(_, off)| *off).unwrap_or_default()
    }
}

/// The box's clock, with its changes.
pub struct VirtualClock {
    start: Instant,
    outages: Arc<Outages>,
}

impl VirtualClock {
    /// Clock that runs from this instant.
    pub fn new(start: Instant, outages: Arc<Outages>) -> Self {
        Self { start, outages }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        // The time of day is not used: a run must not depend on it.
        let start = Timestamp::from_second(1_800_000_000).unwrap_or_default();
        let elapsed = self.start.elapsed();
        let gone = SignedDuration::try_from(elapsed).unwrap_or_default();
        let shown = gone.saturating_add(self.outages.clock_is_off(elapsed));
        start.saturating_add(shown).unwrap_or(Timestamp::MAX)
    }

    fn steady(&self) -> Duration {
        self.start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Outages;
    use crate::fleet::Faults;
    use crate::fleet::chance::Chance;

    #[test]
    fn a_seed_has_its_outages_and_they_end() {
        let faults = Faults::OUTAGES;
        let outages = || Outages::draw(&Chance::new(1, faults), &faults, 0..50);
        let (one, other) = (outages(), outages());
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
        let moments = || (0..2000).map(Duration::from_secs);
        assert!(moments().any(|at| one.is_full(at)));
        assert!(moments().any(|at| !one.reaches(0, at)), "no name server answers");
        let is_dead = |machine| moments().any(|at| !one.reaches(machine, at) && one.reaches(0, at));
        assert!((1..50).any(is_dead));
        assert!(moments().any(|at| one.clock_is_off(at).is_negative()), "back");
        assert!(moments().any(|at| one.clock_is_off(at).is_positive()), "and forward");
        let late = faults.until + Duration::from_secs(600);
        assert!(!one.is_full(late) && (0..50).all(|machine| one.reaches(machine, late)));
    }
}
