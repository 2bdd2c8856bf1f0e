//! Settings of a fleet run: its size, its seed and its faults.

use std::str::FromStr;
use std::time::Duration;

/// Settings of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Machines, each with a workflow.
    pub machines: usize,
    /// Seed of all random decisions.
    pub seed: u64,
    /// Faults that happen in the run.
    pub faults: Faults,
}

/// Kinds and frequencies of faults, until [`Faults::until`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Maximum delay of bytes in transit, before and after a write, and between two events of a
    /// watch.
    pub delay: Duration,
    /// Mean lifetime of a connection; zero: no cuts.
    pub cut: Duration,
    /// Mean time between two kills of the box; zero: none.
    pub kill: Duration,
    /// Writes that report an error, in percent (half of them took effect).
    pub writes: f64,
    /// Machines that lose power once, in percent.
    pub power: f64,
    /// Machines whose agent hangs once, in percent.
    pub silence: f64,
    /// Requests to a management controller that fail, in percent (half of the failed changes took
    /// effect).
    pub controllers: f64,
    /// Actions that fail by themselves, in percent.
    pub actions: f64,
    /// Workflows that their owner cancels at some time, in percent; half of them are retried.
    pub cancelled: f64,
    /// Mean time between two blackouts, in which the box and some machines lose power in the same
    /// instant; zero: never.
    pub blackout: Duration,
    /// Mean time between two changes of the box's clock, forward or back; zero: never.
    pub clock: Duration,
    /// Mean time between two periods in which the box's disk is full; zero: never.
    pub full: Duration,
    /// Mean time between two periods in which no name server answers, so that no management
    /// controller is found; zero: never.
    pub names: Duration,
    /// Machines whose management controller does not answer for up to 10 minutes, in percent.
    pub dead: f64,
    /// Time of the last fault.
    pub until: Duration,
}

impl Faults {
    /// No faults; each message still takes up to 2 ms.
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
    /// Typical faults of a bad day.
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
    /// [`Faults::ROUGH`] with outages of the clock, the disk, name servers and management
    /// controllers.
    pub const OUTAGES: Self = Self {
        clock: Duration::from_secs(150),
        full: Duration::from_secs(300),
        names: Duration::from_secs(300),
        dead: 10.0,
        ..Self::ROUGH
    };
    /// Faults worse than any real rack has.
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

/// The text is not the name of a set of faults.
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
