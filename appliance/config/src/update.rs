//! `[update]`: hours in which the box may restart for an update, and releases that it refuses.

use std::fmt;

use jiff::Zoned;
use jiff::civil::Time;
use semver::Version;
use serde::Deserialize;

use super::network::one_or_more;
use crate::file::sections;

/// Maximum number of releases in `hold`.
const HOLD_MAX: usize = 16;

/// Updates of the box's own system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Update {
    /// Daily hours in which the box may restart for an update, in the time zone of the box:
    /// `02:00-05:00`. Hours may span midnight. Default: any hour. The restart also waits until no
    /// workflow uses a machine.
    pub hours: Option<String>,
    /// Condition for the restart into an installed update. `auto`: in `hours`, when no workflow
    /// uses a machine. `ask`: only by request, such as `tinbox update restart`.
    pub restart: Restart,
    /// Versions that the box refuses, at most 16. Default: none.
    #[serde(deserialize_with = "one_or_more")]
    pub hold: Vec<String>,
}

/// Rule for the restart into an installed update.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Restart {
    /// Restart in the configured hours, when no machine is being worked on.
    #[default]
    Auto,
    /// Restart only by request of a person.
    Ask,
}

impl Restart {
    /// Returns the value in `box.toml`.
    pub fn word(self) -> &'static str {
        match self {
            Restart::Auto => "auto",
            Restart::Ask => "ask",
        }
    }
}

impl Update {
    /// Reads the section from the text of a `box.toml`, unchecked. Returns the default if the text
    /// is not valid or has no such section.
    pub fn of(text: &str) -> Self {
        let mut file: toml::Table = text.parse().unwrap_or_default();
        let section = sections::key_in("update", |name| file.contains_key(name)).into_owned();
        file.remove(&section).and_then(|section| section.try_into().ok()).unwrap_or_default()
    }

    /// Returns the parsed `hours`; `None` if they are not set or not valid.
    pub fn hours(&self) -> Option<Hours> {
        self.hours.as_deref().and_then(Hours::parse)
    }

    /// Returns every mistake; each text begins with its key.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let wrong = self.hours.as_deref().filter(|text| Hours::parse(text).is_none());
        problems.extend(wrong.map(|text| {
            format!("update.hours: expected hours such as \"02:00-05:00\", found {text:?}")
        }));
        if self.hold.len() > HOLD_MAX {
            let count = self.hold.len();
            problems.push(format!("update.hold: {count} releases, the limit is {HOLD_MAX}"));
        }
        for held in &self.hold {
            if let Err(why) = Version::parse(held) {
                problems.push(format!("update.hold: {held:?} is not a valid version: {why}"));
            }
        }
        problems
    }
}

/// Daily hours, from the first minute (included) to the end (excluded). Hours may span midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    from: Time,
    to: Time,
}

impl Hours {
    /// Parses a text such as `02:00-05:00`; `None` if it is not valid or both ends are equal.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let (from, to) = (time(from.trim())?, time(to.trim())?);
        (from != to).then_some(Self { from, to })
    }

    /// Returns true if `now` is in the hours. The time zone of `now` applies.
    pub fn contain(&self, now: &Zoned) -> bool {
        let now = now.time();
        if self.from < self.to {
            self.from <= now && now < self.to
        } else {
            self.from <= now || now < self.to
        }
    }

    /// Returns the first minute: `02:00`.
    pub fn begin(&self) -> String {
        short(self.from)
    }

    /// Returns the first minute and the end, each as `02:00`.
    pub fn ends(&self) -> (String, String) {
        (short(self.from), short(self.to))
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", short(self.from), short(self.to))
    }
}

fn short(time: Time) -> String {
    format!("{:02}:{:02}", time.hour(), time.minute())
}

/// Parses a text such as `02:00`; `None` if it is not valid.
pub(crate) fn time(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str| {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
        text.parse::<i8>().ok().filter(|_| digits)
    };
    Time::new(number(hour)?, number(minute).filter(|_| minute.len() == 2)?, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::{Hours, Update};

    #[test]
    fn hours_go_over_midnight_and_are_those_of_the_zone() {
        let berlin = super::super::zone("Europe/Berlin").unwrap();
        // Berlin has no 02:00 on this night in March: the clock goes from 02:00 to 03:00.
        let cases = [
            ("02:00-05:00", "2026-01-10T01:00:00Z", true),
            ("02:00-05:00", "2026-01-10T00:59:59Z", false),
            ("02:00-05:00", "2026-01-10T04:00:00Z", false),
            ("02:00-05:00", "2026-07-10T00:00:00Z", true),
            ("02:00-05:00", "2026-03-29T01:00:00Z", true),
            ("22:30-1:00", "2026-01-10T21:30:00Z", true),
            ("22:30-1:00", "2026-01-10T23:59:00Z", true),
            ("22:30-1:00", "2026-01-11T00:00:00Z", false),
        ];
        for (hours, now, inside) in cases {
            let now = now.parse::<Timestamp>().unwrap().to_zoned(berlin.clone());
            assert_eq!(Hours::parse(hours).unwrap().contain(&now), inside, "{hours} at {now}");
        }
        let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
        assert!(Hours::parse("00:00-0:01").unwrap().contain(&now));
        assert_eq!(Hours::parse("2:00-05:30").unwrap().to_string(), "02:00-05:30");
    }

    #[test]
    fn what_are_no_hours_is_said() {
        let texts =
            ["", "02:00", "02:00-02:00", "25:00-26:00", "2-5", "02:60-3:00", "-", "+2:00-3:00"];
        for text in texts {
            let update = Update { hours: Some(text.to_owned()), ..Update::default() };
            let problems = update.problems();
            assert!(problems[0].contains("expected hours such as"), "{text:?} {problems:?}");
        }
        let update = Update { hold: vec!["later".to_owned()], ..Update::default() };
        assert!(update.problems()[0].contains("update.hold: \"later\" is not a valid version"));
    }
}
