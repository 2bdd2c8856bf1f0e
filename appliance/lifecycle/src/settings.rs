//! The box's settings: `box.toml` on its boot volume, read, checked and changed from the running
//! box, with every revision kept (BK-5).
//!
//! Never: a text on the volume that the box's own parser does not take, a change that was made from
//! another text than the one it replaces, a secret in a diff.

mod diff;
mod disk;
mod edit;
mod handlers;
pub mod roles;
mod secrets;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};
use status::settings::{Revision, SettingsReport};
use stdx::{Clock, is_full};
use tokio::sync::watch;

pub use config::mistakes::Mistake;
use config::{Config, Home, Hours, Restart, zone};
pub use disk::{Disk, Kept, OnDisk};
pub use handlers::router;

/// Revisions that are kept.
pub const REVISIONS_MAX: usize = 100;
/// Old revisions that are given up for the room of a new one: each has a block at least.
const GIVEN_UP_MAX: usize = 4;
/// Bytes of a text.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// Characters of a note.
const NOTE_CHARS_MAX: usize = 200;
/// What the running box follows at once: keys, and with a dot at the end all keys below.
const LIVE: [&str; 2] = ["time.zone", "upgrade."];
/// Who wrote what the box finds on its volume.
const OUTSIDE: &str = "the boot volume";

/// What follows a change at once.
#[derive(Debug, Clone)]
pub struct LiveSettings {
    /// The zone that people read times in.
    pub zone: TimeZone,
    /// When the box may restart for an update.
    pub hours: Option<Hours>,
    /// Whether it does so by itself.
    pub restart: Restart,
    /// Releases that are refused.
    pub hold: Vec<String>,
}

impl LiveSettings {
    /// As a configuration says it.
    pub fn of(config: &Config) -> Self {
        let named = config.time.zone.as_deref().and_then(zone);
        Self {
            zone: named.unwrap_or(TimeZone::UTC),
            hours: config.upgrade.hours(),
            restart: config.upgrade.restart,
            hold: config.upgrade.hold.clone(),
        }
    }
}

/// Why the settings are as they were.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The change was made from another text.
    #[error(
        "somebody else changed the settings meanwhile: they are {found}, and the change was made \
         from {based}\nhint: read them again, then change them"
    )]
    Changed {
        /// The sum of what there is.
        found: String,
        /// The sum of what the change was made from.
        based: String,
    },
    /// The new text has mistakes: all of them.
    #[error("the settings would have mistakes:{}", listed(.0))]
    Mistakes(Vec<Mistake>),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Unwanted(String),
    /// There is no such revision.
    #[error("there is no revision {0}; `tinbox box settings history` lists those there are")]
    NoRevision(u32),
    /// The state folder.
    #[error("cannot keep the revisions of the settings")]
    History(#[source] io::Error),
    /// The boot volume.
    #[error(transparent)]
    Volume(platform::Error),
}

fn listed(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(|mistake| format!("\n  {mistake}")).collect()
}

/// Who changes something, and what they say about it.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// A user's name, or what they stood before.
    pub actor: &'a str,
    /// May be empty.
    pub note: &'a str,
}

/// The settings of this box.
pub struct Settings {
    disk: Box<dyn Disk>,
    clock: Arc<dyn Clock>,
    home: Home,
    /// What the box was started with.
    started: String,
    live: watch::Sender<LiveSettings>,
    writing: Mutex<()>,
}

impl Settings {
    /// Those of the box that was started with `config`, which came from the same file.
    pub fn open(disk: Box<dyn Disk>, clock: Arc<dyn Clock>, home: Home, config: &Config) -> Self {
        let started = disk.read().ok().flatten().unwrap_or_default();
        let (live, _) = watch::channel(LiveSettings::of(config));
        Self { disk, clock, home, started, live, writing: Mutex::default() }
    }

    /// What follows a change at once.
    pub fn live(&self) -> watch::Receiver<LiveSettings> {
        self.live.subscribe()
    }

    /// The text on the volume.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn text(&self) -> Result<String, Refused> {
        Ok(self.disk.read().map_err(Refused::Volume)?.unwrap_or_default())
    }

    /// The settings that the text on the volume means; a text with mistakes means none, as at a
    /// start.
    pub fn config(&self) -> Config {
        let text = self.text().unwrap_or_default();
        Config::read(&text, self.home).unwrap_or_else(|_| Config::untold())
    }

    /// How they are; `secrets` shows those too.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn report(&self, secrets: bool) -> Result<SettingsReport, Refused> {
        let text = self.text()?;
        let sum = sum(&text);
        let kept = self.disk.kept().map_err(Refused::History)?;
        let revision = kept.iter().rev().find(|kept| self::sum(&kept.text) == sum);
        Ok(SettingsReport {
            revision: revision.map(|kept| kept.number),
            live: Vec::new(),
            restart: changed(&self.started, &text).into_iter().filter(|key| !live(key)).collect(),
            text: if secrets { text } else { secrets::hidden(&text) },
            sum,
        })
    }

    /// Every revision that is kept, the oldest first.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn history(&self) -> Result<Vec<Revision>, Refused> {
        let (kept, now) = (self.disk.kept().map_err(Refused::History)?, sum(&self.text()?));
        let current = kept.iter().rposition(|kept| sum(&kept.text) == now);
        let revision = |(at, kept): (usize, Kept)| Revision {
            sum: sum(&kept.text),
            current: Some(at) == current,
            number: kept.number,
            at: kept.at,
            actor: kept.actor,
            note: kept.note,
        };
        Ok(kept.into_iter().enumerate().map(revision).collect())
    }

    /// What differs between two revisions, secrets hidden; `None` is what there is now.
    ///
    /// # Errors
    /// One is not kept any more, or cannot be read.
    pub fn diff(&self, from: Option<u32>, to: Option<u32>) -> Result<String, Refused> {
        let kept = self.disk.kept().map_err(Refused::History)?;
        let text = |number: Option<u32>| match number {
            None => self.text(),
            Some(number) => found(&kept, number).map(|kept| kept.text.clone()),
        };
        let (old, new) = (text(from)?, text(to)?);
        let (old, new) = secrets::hidden_in_both(&old, &new);
        Ok(diff::unified(&old, &new))
    }

    /// Replaces the text that has the sum `based`.
    ///
    /// # Errors
    /// Everything is as it was.
    pub fn replace(&self, based: &str, by: By<'_>, text: &str) -> Result<SettingsReport, Refused> {
        self.write(based, by, |_, _| Ok(text.to_owned()))
    }

    /// Changes some keys of the text that has the sum `based`: values by their keys, `None` to take
    /// one away.
    ///
    /// # Errors
    /// Everything is as it was.
    pub fn set(
        &self,
        based: &str,
        by: By<'_>,
        keys: &BTreeMap<String, Option<String>>,
    ) -> Result<SettingsReport, Refused> {
        self.write(based, by, |text, _| edit::set(text, keys).map_err(Refused::Unwanted))
    }

    /// Changes the text that there is now, whatever it is: for a decision that looks at it itself.
    ///
    /// # Errors
    /// Everything is as it was.
    pub fn change(
        &self,
        by: By<'_>,
        keys: &BTreeMap<String, Option<String>>,
    ) -> Result<SettingsReport, Refused> {
        self.set(&sum(&self.text()?), by, keys)
    }

    /// Makes another text of the one that there is now.
    ///
    /// # Errors
    /// Everything is as it was.
    pub fn rewrite(
        &self,
        by: By<'_>,
        make: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<SettingsReport, Refused> {
        let based = sum(&self.text()?);
        self.write(&based, by, |text, _| make(text).map_err(Refused::Unwanted))
    }

    /// Writes an older revision again, over the text that has the sum `based`.
    ///
    /// # Errors
    /// Everything is as it was.
    pub fn revert(&self, based: &str, by: By<'_>, number: u32) -> Result<SettingsReport, Refused> {
        let note = match by.note {
            "" => format!("revision {number} again"),
            note => note.to_owned(),
        };
        let by = By { actor: by.actor, note: &note };
        self.write(based, by, |_, kept| found(kept, number).map(|kept| kept.text.clone()))
    }

    fn write(
        &self,
        based: &str,
        by: By<'_>,
        make: impl FnOnce(&str, &[Kept]) -> Result<String, Refused>,
    ) -> Result<SettingsReport, Refused> {
        // Held to the end: of two changes of one text, one is the first.
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (old, kept) = (self.text()?, self.disk.kept().map_err(Refused::History)?);
        if sum(&old) != based {
            let (found, based) = (sum(&old), based.chars().take(NOTE_CHARS_MAX).collect());
            return Err(Refused::Changed { found, based });
        }
        let new = make(&old, &kept)?;
        let config = self.checked(&new)?;
        if new != old {
            let kept = self.found(kept, &old)?;
            self.keep(&kept, by, &new)?;
            tracing::info!(actor = by.actor, note = note(by.note), "the settings were changed");
            self.live.send_replace(LiveSettings::of(&config));
        }
        let done = changed(&old, &new).into_iter().filter(|key| live(key)).collect();
        Ok(SettingsReport { live: done, ..self.report(false)? })
    }

    fn checked(&self, text: &str) -> Result<Config, Refused> {
        if text.len() > TEXT_BYTES_MAX {
            let why = format!("{} bytes of settings are more than {TEXT_BYTES_MAX}", text.len());
            return Err(Refused::Unwanted(why));
        }
        config::mistakes::checked(text, self.home).map_err(Refused::Mistakes)
    }

    /// The revisions, with that of a text that somebody wrote on the volume while the box was not
    /// asked.
    fn found(&self, mut kept: Vec<Kept>, text: &str) -> Result<Vec<Kept>, Refused> {
        let known = kept.iter().any(|kept| kept.text == text);
        let nothing = kept.is_empty() && text.is_empty();
        if !known && !nothing {
            let found = Kept {
                number: next(&kept),
                at: None,
                actor: OUTSIDE.to_owned(),
                note: String::new(),
                text: text.to_owned(),
            };
            self.keep_one(&kept, &found)?;
            kept.push(found);
        }
        Ok(kept)
    }

    /// Keeps a revision. One that finds no room takes that of the oldest. The settings may be what
    /// makes room, so they are changed all the same where none is left.
    fn keep_one(&self, kept: &[Kept], new: &Kept) -> Result<(), Refused> {
        let mut kept_now = self.disk.keep(new);
        for old in kept.iter().take(GIVEN_UP_MAX) {
            match &kept_now {
                Err(error) if is_full(error) => {}
                _ => break,
            }
            let freed = self.disk.forget(old.number);
            kept_now = freed.and_then(|()| self.disk.keep(new));
        }
        match kept_now {
            Err(error) if is_full(&error) => {
                tracing::warn!(%error, revision = new.number, "this revision is not kept");
                Ok(())
            }
            kept => kept.map_err(Refused::History),
        }
    }

    /// Kept first, so that a revision that is on the volume is never unknown; one that is kept and
    /// did not come to the volume is a revision that never was in force.
    fn keep(&self, kept: &[Kept], by: By<'_>, text: &str) -> Result<(), Refused> {
        let new = Kept {
            number: next(kept),
            at: Some(self.clock.now()),
            actor: by.actor.to_owned(),
            note: note(by.note),
            text: text.to_owned(),
        };
        self.keep_one(kept, &new)?;
        self.disk.replace(text, new.number).map_err(Refused::Volume)?;
        let too_many = (kept.len() + 1).saturating_sub(REVISIONS_MAX);
        for old in kept.iter().take(too_many) {
            if let Err(error) = self.disk.forget(old.number) {
                tracing::warn!(%error, revision = old.number, "an old revision stays");
            }
        }
        Ok(())
    }
}

/// What identifies a text.
pub fn sum(text: &str) -> String {
    stdx::hex(&Sha256::digest(text)[..16])
}

fn next(kept: &[Kept]) -> u32 {
    kept.iter().map(|kept| kept.number).max().unwrap_or(0).saturating_add(1)
}

fn found(kept: &[Kept], number: u32) -> Result<&Kept, Refused> {
    kept.iter().find(|kept| kept.number == number).ok_or(Refused::NoRevision(number))
}

/// One line of it.
fn note(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(NOTE_CHARS_MAX).collect()
}

fn live(key: &str) -> bool {
    LIVE.iter().any(|live| key == *live || (live.ends_with('.') && key.starts_with(live)))
}

/// The keys whose values differ between two texts; all of a text that stands beside one that
/// cannot be read.
fn changed(old: &str, new: &str) -> Vec<String> {
    let (old, new) = (edit::leaves(old), edit::leaves(new));
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differs = |key: &&&String| old.get(**key) != new.get(**key);
    keys.iter().filter(differs).map(|key| (*key).clone()).collect()
}

#[cfg(test)]
mod tests;
