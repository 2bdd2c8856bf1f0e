//! What goes wrong, and how often. Text form: `rough`, or `calm,drop=2.5,kill=30`.

use std::str::FromStr;

use crate::clock::{MILLI, Moment, SECOND};

/// The faults of a run; all of them end at [`Faults::until`], and then everybody must boot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Of a hundred packets, how many are lost.
    pub drop: f64,
    /// Of a hundred packets, how many arrive twice.
    pub duplicate: f64,
    /// The longest that a packet is held up, beyond the 100 µs that each needs. What is held up is
    /// overtaken: this is the reordering.
    pub delay: Moment,
    /// The mean time between two deaths of the box; 0: it is not killed.
    pub kill: Moment,
    /// Of a hundred commits, how many report an error (half of them took effect).
    pub commit: f64,
    /// Of a hundred commits, how many say that they are durable and are not. No box can bear that:
    /// it is there to see that it is noticed.
    pub lies: f64,
    /// Of a hundred machines, how many lose power, or are shut down, at some time.
    pub power: f64,
    /// The mean time between two closings of the gate, as when another server is heard; 0: none.
    pub gate: Moment,
    /// Of a hundred pool addresses, how many a station uses that nobody told the box of.
    pub squatters: f64,
    /// Of a hundred machines, how many have a card that the first loader cannot drive.
    pub cards: f64,
    /// When the last fault happens.
    pub until: Moment,
}

impl Faults {
    /// A good wire, and nobody dies.
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
    /// A bad day.
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
    /// Worse than any rack will see.
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

/// Not faults, and why.
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
