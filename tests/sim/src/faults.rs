//! Kinds and frequencies of faults. Text form: `rough`, or `calm,drop=2.5,kill=30`.

use std::str::FromStr;

use crate::clock::{MILLI, Moment, SECOND};

/// Faults of a run. All faults end at [`Faults::until`]; after that every machine must boot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Lost packets, in percent.
    pub drop: f64,
    /// Packets that arrive twice, in percent.
    pub duplicate: f64,
    /// Maximum extra delay of one packet in eight. Other packets overtake a delayed packet: this
    /// causes the reordering.
    pub delay: Moment,
    /// Mean time between two kills of the box; 0: no kills.
    pub kill: Moment,
    /// Commits that report an error, in percent (half of them took effect).
    pub commit: f64,
    /// Commits that report success but are not durable, in percent. No box can survive this fault:
    /// a test checks that the simulation detects it.
    pub lies: f64,
    /// Machines that lose power, or are shut down, at some time, in percent.
    pub power: f64,
    /// Mean time between two interruptions of DHCP service, as when another server is detected; 0:
    /// none.
    pub gate: Moment,
    /// Pool addresses used by a station that is unknown to the box, in percent.
    pub squatters: f64,
    /// Machines whose NIC does not work with the first loader, in percent.
    pub cards: f64,
    /// Time of the last fault.
    pub until: Moment,
}

impl Faults {
    /// No faults: a perfect network and no kills.
    pub const CALM: Self = Self {
        drop: 0.0,
        duplicate: 0.0,
        delay: 0,
        kill: 0,
        commit: 0.0,
        lies: 0.0,
        power: 0.0,
        gate: 0,
        squatters: 0.0,
        cards: 0.0,
        until: 0,
    };
    /// Typical faults of a bad day; the default of [`crate::Settings::new`].
    pub const ROUGH: Self = Self {
        drop: 3.0,
        duplicate: 2.0,
        delay: 250 * MILLI,
        kill: 25 * SECOND,
        commit: 1.0,
        lies: 0.0,
        power: 20.0,
        gate: 120 * SECOND,
        squatters: 2.0,
        cards: 2.0,
        until: 600 * SECOND,
    };
    /// Faults worse than any real rack has.
    pub const STORM: Self = Self {
        drop: 20.0,
        duplicate: 10.0,
        delay: 900 * MILLI,
        kill: 6 * SECOND,
        commit: 10.0,
        lies: 0.0,
        power: 80.0,
        gate: 60 * SECOND,
        squatters: 5.0,
        cards: 5.0,
        until: 1200 * SECOND,
    };
}

/// The text is not a valid description of faults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither calm, rough, storm nor a number for drop, duplicate, commit, lies, power, \
     squatters or cards (percent), delay (milliseconds), kill, gate or until (seconds)"
)]
pub struct NotFaults(String);

impl FromStr for Faults {
    type Err = NotFaults;

    fn from_str(text: &str) -> Result<Self, NotFaults> {
        let mut faults = Self::ROUGH;
        for part in text.split(',') {
            let wrong = || NotFaults(part.to_owned());
            let Some((name, number)) = part.split_once('=') else {
                faults = match part {
                    "calm" => Self::CALM,
                    "rough" => Self::ROUGH,
                    "storm" => Self::STORM,
                    _ => return Err(wrong()),
                };
                continue;
            };
            let number: f64 = number.parse().map_err(|_| wrong())?;
            if !(0.0..1e9).contains(&number) {
                return Err(wrong());
            }
            let time = |unit: Moment| (number * unit as f64) as Moment;
            match name {
                "drop" => faults.drop = number,
                "duplicate" => faults.duplicate = number,
                "delay" => faults.delay = time(MILLI),
                "kill" => faults.kill = time(SECOND),
                "commit" => faults.commit = number,
                "lies" => faults.lies = number,
                "power" => faults.power = number,
                "gate" => faults.gate = time(SECOND),
                "squatters" => faults.squatters = number,
                "cards" => faults.cards = number,
                "until" => faults.until = time(SECOND),
                _ => return Err(wrong()),
            }
        }
        Ok(faults)
    }
}

#[cfg(test)]
mod tests {
    use super::Faults;
    use crate::clock::{MILLI, SECOND};

    #[test]
    fn faults_are_read_from_text() {
        assert_eq!("storm".parse(), Ok(Faults::STORM));
        let few: Faults = "calm,drop=2.5,delay=30,kill=4".parse().unwrap();
        let expected = Faults { drop: 2.5, delay: 30 * MILLI, kill: 4 * SECOND, ..Faults::CALM };
        assert_eq!(few, expected);
        for wrong in ["", "wild", "drop", "drop=", "drop=-1", "speed=3", "drop=NaN"] {
            assert!(wrong.parse::<Faults>().is_err(), "{wrong:?}");
        }
    }
}
