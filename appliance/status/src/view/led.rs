//! What the lights of the box say, by rhythm and not by colour (LE-1 … LE-3).

use super::problem::{Urgency, problems};
use super::{Nic, StatusView};

/// A rhythm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Dark.
    Off,
    /// Lit.
    Solid,
    /// Once a second: it starts, or updates itself.
    Slow,
    /// Twice, then a pause: it wants an owner.
    Double,
    /// Four times a second: somebody should look.
    Fast,
    /// Long, long, dark: this is the box somebody looks for.
    Identify,
    /// Irregular, as long as bytes go out.
    Flicker,
}

impl Pattern {
    /// Whether the light is on, so many milliseconds after the rhythm began.
    pub fn lit(self, millis: u64) -> bool {
        match self {
            Pattern::Off => false,
            Pattern::Solid => true,
            Pattern::Slow => millis % 1000 < 500,
            Pattern::Double => matches!(millis % 2000, 0..150 | 300..450),
            Pattern::Fast => millis % 250 < 125,
            Pattern::Identify => matches!(millis % 1500, 0..500 | 750..1250),
            Pattern::Flicker => (millis / 50).wrapping_mul(0x9e37_79b9) >> 4 & 1 == 0,
        }
    }
}

/// The first light: how the box is.
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
        // It waits for a person to choose a port: it has an owner, and does not serve.
        _ => Pattern::Double,
    }
}

/// The second light, where there is one: bytes that go to booting machines.
pub fn second(view: &StatusView) -> Pattern {
    match view.boot_traffic.last() {
        Some(bytes) if *bytes > 0 => Pattern::Flicker,
        _ => Pattern::Off,
    }
}
