//! What a run is made of.

use std::str::FromStr;
use std::time::Duration;

/// A run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Machines, each with a workflow.
    pub machines: usize,
    /// Where chance comes from.
    pub seed: u64,
    /// What goes wrong.
    pub faults: Faults,
}

/// What goes wrong, and how often, until [`Faults::until`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// The longest that bytes are under way, and that a write or a watch takes.
    pub delay: Duration,
    /// The mean life of a connection; zero: as long as it is wanted.
    pub cut: Duration,
    /// The mean time between two deaths of the box; zero: none.
    pub kill: Duration,
    /// Of a hundred writes, how many report an error (half of them took effect).
    pub writes: f64,
    /// Of a hundred machines, how many lose power once.
    pub power: f64,
    /// Of a hundred machines, how many have an agent that falls silent once.
    pub silence: f64,
    /// Of a hundred questions to a management controller, how many fail (half of the changes among
    /// them came about).
    pub controllers: f64,
    /// Of a hundred actions begun, how many fail by themselves.
    pub actions: f64,
    /// Of a hundred workflows, how many their owner cancels at some time; half of them are retried.
    pub cancelled: f64,
    /// The mean time between two moments in which the box and machines lose power at once; zero:
    /// never.
    pub blackout: Duration,
    /// The mean time between two settings of the box's clock, forward or back; zero: never.
    pub clock: Duration,
    /// The mean time between two moments from which on the box's disk is full for a while; zero:
    /// never.
    pub full: Duration,
    /// The mean time between two moments from which on no name server answers for a while, and so
    /// no management controller is found; zero: never.
    pub names: Duration,
    /// Of a hundred machines, how many have a management controller that is dead for a while.
    pub dead: f64,
    /// When the last of these happens.
    pub until: Duration,
}

impl Faults {
    /// Nothing does.
    pub const CALM: Self = Self {
        delay: Duration::from_millis(2),
        cut: Duration::ZERO,
        kill: Duration::ZERO,
        writes: 0.0,
        power: 0.0,
        silence: 0.0,
        controllers: 0.0,
        actions: 0.0,
        cancelled: 0.0,
        blackout: Duration::ZERO,
        clock: Duration::ZERO,
        full: Duration::ZERO,
        names: Duration::ZERO,
        dead: 0.0,
        until: Duration::ZERO,
    };
    /// A bad day.
    pub const ROUGH: Self = Self {
        delay: Duration::from_millis(100),
        cut: Duration::from_secs(120),
        kill: Duration::from_secs(60),
        writes: 1.0,
        power: 20.0,
        silence: 5.0,
        controllers: 3.0,
        actions: 3.0,
        cancelled: 5.0,
        blackout: Duration::from_secs(300),
        until: Duration::from_secs(900),
        ..Self::CALM
    };
    /// A bad day on which all else that the box lives of fails for a while too.
    pub const OUTAGES: Self = Self {
        clock: Duration::from_secs(150),
        full: Duration::from_secs(300),
        names: Duration::from_secs(300),
        dead: 10.0,
        ..Self::ROUGH
    };
    /// Worse than any rack will see.
    pub const STORM: Self = Self {
        delay: Duration::from_secs(2),
        cut: Duration::from_secs(20),
        kill: Duration::from_secs(15),
        writes: 10.0,
        power: 60.0,
        silence: 20.0,
        controllers: 10.0,
        actions: 10.0,
        cancelled: 10.0,
        blackout: Duration::from_secs(200),
        until: Duration::from_secs(1800),
        ..Self::CALM
    };
}

/// Not a day that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither calm, rough, storm nor outages")]
pub struct NotFaults(String);

impl FromStr for Faults {
    type Err = NotFaults;

    fn from_str(text: &str) -> Result<Self, NotFaults> {
        match text {
            "calm" => Ok(Self::CALM),
            "rough" => Ok(Self::ROUGH),
            "storm" => Ok(Self::STORM),
            "outages" => Ok(Self::OUTAGES),
            _ => Err(NotFaults(text.to_owned())),
        }
    }
}
