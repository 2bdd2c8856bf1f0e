//! LED patterns of the box. The rhythm carries the meaning, not the color (LE-1 … LE-3).

use super::problem::{Urgency, problems};
use super::{Nic, StatusView};

/// Rhythm of an LED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// The LED is off.
    Off,
    /// The LED is on.
    Solid,
    /// Blinks once a second: the box starts, or an update is in progress.
    Slow,
    /// Blinks twice, then pauses: the box is unclaimed, or DHCP does not serve.
    Double,
    /// Blinks four times a second: a problem needs a person.
    Fast,
    /// Blinks twice for half a second, every 1.5 s: identifies the box among others.
    Identify,
    /// Blinks irregularly: the box sends bytes to booting machines.
    Flicker,
}

/// Time between two changes of a flickering LED, in milliseconds.
const FLICKER_MILLIS: u64 = 50;

impl Pattern {
    /// Returns true if the LED is on, `millis` after the rhythm began.
    pub fn lit(self, millis: u64) -> bool {
        match self {
            Pattern::Off => false,
            Pattern::Solid => true,
            Pattern::Flicker => (millis / FLICKER_MILLIS).wrapping_mul(0x9e37_79b9) >> 4 & 1 == 0,
            rhythm => rhythm.place(millis).0 % 2 == 0,
        }
    }

    /// Returns the milliseconds until the next change of the LED; `None` if it never changes.
    pub fn stays(self, millis: u64) -> Option<u64> {
        match self {
            Pattern::Off | Pattern::Solid => None,
            Pattern::Flicker => Some(FLICKER_MILLIS - millis % FLICKER_MILLIS),
            rhythm => Some(rhythm.place(millis).1),
        }
    }

    /// Times of changes in milliseconds. The LED is on first; the last time is the period.
    fn changes(self) -> &'static [u64] {
        match self {
            Pattern::Slow => &[500, 1000],
            Pattern::Double => &[150, 300, 450, 2000],
            Pattern::Fast => &[125, 250],
            Pattern::Identify => &[500, 750, 1250, 1500],
            Pattern::Off | Pattern::Solid | Pattern::Flicker => &[],
        }
    }

    /// Returns the number of changes so far in the period, and the milliseconds until the next
    /// change.
    fn place(self, millis: u64) -> (usize, u64) {
        let changes = self.changes();
        let at = millis % changes.last().copied().unwrap_or(1);
        let passed = changes.iter().take_while(|change| **change <= at).count();
        (passed, changes.get(passed).map_or(1, |change| change - at))
    }
}

/// Returns the pattern of the first LED: the health of the box.
pub fn first(view: &StatusView) -> Pattern {
    let updates = view.update.as_ref().is_some_and(|update| update.state.under_way());
    let worst = problems(view).first().map(|problem| problem.urgency);
    match worst {
        _ if view.identifying => Pattern::Identify,
        _ if view.starting().is_some() => Pattern::Slow,
        _ if view.claim.is_some() => Pattern::Double,
        Some(Urgency::Box | Urgency::Machine) => Pattern::Fast,
        _ if updates => Pattern::Slow,
        _ if view.nics.iter().any(Nic::armed) => Pattern::Solid,
        // The box has an owner and serves no network: a person must choose a port.
        _ => Pattern::Double,
    }
}

/// Returns the pattern of the optional second LED: traffic to booting machines.
pub fn second(view: &StatusView) -> Pattern {
    match view.boot_traffic.last() {
        Some(bytes) if *bytes > 0 => Pattern::Flicker,
        _ => Pattern::Off,
    }
}
