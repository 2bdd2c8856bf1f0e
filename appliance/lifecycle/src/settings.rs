//! The box's settings: `box.toml` on its boot volume, read, checked and changed from the running
//! box. Every revision is kept (BK-5).
//!
//! Never: a text on the volume that the box's parser rejects, a secret in a diff. Never a change
//! that is based on an outdated text.

mod diff;
mod disk;
mod edit;
mod error;
mod handlers;
pub mod roles;
mod secrets;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};
use status::settings::{Revision, SettingsReport};
use stdx::{Clock, is_full};
use tokio::sync::watch;

pub use config::mistakes::Mistake;
use config::{Config, Hours, Restart, SystemKind, zone};
pub use disk::{Disk, OnDisk, StoredRevision};
pub use error::SettingsError;
pub use handlers::router;

/// Maximum number of stored revisions.
pub const REVISIONS_MAX: usize = 100;
/// Maximum number of old revisions that one new revision may displace on a full disk.
const GIVEN_UP_MAX: usize = 4;
/// Maximum size of the text of `box.toml` in bytes.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// Maximum length of a note in characters.
const NOTE_CHARS_MAX: usize = 200;
/// Keys whose changes take effect without a restart. A dot at the end stands for all keys below it.
const LIVE: [&str; 2] = ["time.zone", "update."];
/// Author of a text that was written to the boot volume without this module.
const OUTSIDE: &str = "the boot volume";

/// Settings whose changes take effect without a restart.
#[derive(Debug, Clone)]
pub struct LiveSettings {
    /// Time zone for times that people read; UTC by default.
    pub zone: TimeZone,
    /// Hours in which the box may restart for an update; `None` means at any time.
    pub hours: Option<Hours>,
    /// Permission for the restart after an update: automatic, or by a person.
    pub restart: Restart,
    /// Releases that the box refuses to install.
    pub hold: Vec<String>,
}

impl LiveSettings {
    /// Returns the live settings of `config`.
    pub fn of(config: &Config) -> Self {
        let named = config.time.zone.as_deref().and_then(zone);
        Self {
            zone: named.unwrap_or(TimeZone::UTC),
            hours: config.update.hours(),
            restart: config.update.restart,
            hold: config.update.hold.clone(),
        }
    }
}

/// Author of a change, and the note on it.
#[derive(Debug, Clone, Copy)]
pub struct ChangeAuthor<'a> {
    /// Name of a user, or the place of the change, such as the web page.
    pub actor: &'a str,
    /// Text for the history; may be empty.
    pub note: &'a str,
}

/// Settings of this box, with their revisions.
pub struct Settings {
    disk: Box<dyn Disk>,
    clock: Arc<dyn Clock>,
    system_kind: SystemKind,
    /// Text of the settings at the start of the box.
    started: String,
    live: watch::Sender<LiveSettings>,
    writing: Mutex<()>,
}

impl Settings {
    /// Opens the settings of a box that was started with `config`, read from the same file.
    pub fn open(
        disk: Box<dyn Disk>,
        clock: Arc<dyn Clock>,
        system_kind: SystemKind,
        config: &Config,
    ) -> Self {
        let started = disk.read().ok().flatten().unwrap_or_default();
        let (live, _) = watch::channel(LiveSettings::of(config));
        Self { disk, clock, system_kind, started, live, writing: Mutex::default() }
    }

    /// Subscribes to the settings that take effect without a restart.
    pub fn live(&self) -> watch::Receiver<LiveSettings> {
        self.live.subscribe()
    }

    /// Returns the text of `box.toml` on the volume; empty if the file is missing.
    ///
    /// # Errors
    /// The volume cannot be read.
    pub fn text(&self) -> Result<String, SettingsError> {
        Ok(self.disk.read().map_err(SettingsError::Volume)?.unwrap_or_default())
    }

    /// Parses the text on the volume. A text with mistakes gives an empty configuration.
    pub fn config(&self) -> Config {
        let text = self.text().unwrap_or_default();
        Config::read(&text, self.system_kind).unwrap_or_else(|_| Config::untold())
    }

    /// Returns the current text, and the keys that need a restart. `secrets` shows secrets too.
    ///
    /// # Errors
    /// The text or the revisions cannot be read.
    pub fn report(&self, secrets: bool) -> Result<SettingsReport, SettingsError> {
        let text = self.text()?;
        let sum = sum(&text);
        let kept = self.disk.kept().map_err(SettingsError::History)?;
        let revision = kept.iter().rev().find(|kept| self::sum(&kept.text) == sum);
        Ok(SettingsReport {
            revision: revision.map(|kept| kept.number),
            live: Vec::new(),
            restart: changed(&self.started, &text).into_iter().filter(|key| !live(key)).collect(),
            text: if secrets { text } else { secrets::hidden(&text) },
            sum,
        })
    }

    /// Returns the stored revisions, oldest first.
    ///
    /// # Errors
    /// The text or the revisions cannot be read.
    pub fn history(&self) -> Result<Vec<Revision>, SettingsError> {
        let (kept, now) = (self.disk.kept().map_err(SettingsError::History)?, sum(&self.text()?));
        let current = kept.iter().rposition(|kept| sum(&kept.text) == now);
        let revision = |(at, kept): (usize, StoredRevision)| Revision {
            sum: sum(&kept.text),
            current: Some(at) == current,
            number: kept.number,
            at: kept.at,
            actor: kept.actor,
            note: kept.note,
        };
        Ok(kept.into_iter().enumerate().map(revision).collect())
    }

    /// Returns the difference of two revisions, secrets hidden. `None` is the current text.
    ///
    /// # Errors
    /// A revision does not exist, or cannot be read.
    pub fn diff(&self, from: Option<u32>, to: Option<u32>) -> Result<String, SettingsError> {
        let kept = self.disk.kept().map_err(SettingsError::History)?;
        let text = |number: Option<u32>| match number {
            None => self.text(),
            Some(number) => found(&kept, number).map(|kept| kept.text.clone()),
        };
        let (old, new) = (text(from)?, text(to)?);
        let (old, new) = secrets::hidden_in_both(&old, &new);
        Ok(diff::unified(&old, &new))
    }

    /// Replaces the text. `based` is the sum of the text that the change is based on.
    ///
    /// # Errors
    /// The change is refused, or cannot be written. The settings are unchanged.
    pub fn replace(
        &self,
        based: &str,
        by: ChangeAuthor<'_>,
        text: &str,
    ) -> Result<SettingsReport, SettingsError> {
        self.write(based, by, |_, _| Ok(text.to_owned()))
    }

    /// Replaces the text as [`Self::replace`]. Values that [`Self::report`] hides stay as they are.
    ///
    /// # Errors
    /// As [`Self::replace`], or a hidden value has no earlier value.
    pub fn replace_shown(
        &self,
        based: &str,
        by: ChangeAuthor<'_>,
        text: &str,
    ) -> Result<SettingsReport, SettingsError> {
        let restored = |old: &str| secrets::restored(text, old).map_err(SettingsError::Unwanted);
        self.write(based, by, |old, _| restored(old))
    }

    /// Changes some keys of the text with the sum `based`. A value of `None` removes the key.
    ///
    /// # Errors
    /// The change is refused, or cannot be written. The settings are unchanged.
    pub fn set(
        &self,
        based: &str,
        by: ChangeAuthor<'_>,
        keys: &BTreeMap<String, Option<String>>,
    ) -> Result<SettingsReport, SettingsError> {
        self.write(based, by, |text, _| edit::set(text, keys).map_err(SettingsError::Unwanted))
    }

    /// Changes keys of the current text without a check of its sum.
    ///
    /// # Errors
    /// The change is refused, or cannot be written. The settings are unchanged.
    pub fn change(
        &self,
        by: ChangeAuthor<'_>,
        keys: &BTreeMap<String, Option<String>>,
    ) -> Result<SettingsReport, SettingsError> {
        self.set(&sum(&self.text()?), by, keys)
    }

    /// Replaces the current text with the result of `make`, which gets the current text.
    ///
    /// # Errors
    /// The change is refused, or cannot be written. The settings are unchanged.
    pub fn rewrite(
        &self,
        by: ChangeAuthor<'_>,
        make: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<SettingsReport, SettingsError> {
        let based = sum(&self.text()?);
        self.write(&based, by, |text, _| make(text).map_err(SettingsError::Unwanted))
    }

    /// Restores the text of revision `number`. `based` is the sum of the current text.
    ///
    /// # Errors
    /// The change is refused, or cannot be written. The settings are unchanged.
    pub fn revert(
        &self,
        based: &str,
        by: ChangeAuthor<'_>,
        number: u32,
    ) -> Result<SettingsReport, SettingsError> {
        let note = match by.note {
            "" => format!("restored revision {number}"),
            note => note.to_owned(),
        };
        let by = ChangeAuthor { actor: by.actor, note: &note };
        self.write(based, by, |_, kept| found(kept, number).map(|kept| kept.text.clone()))
    }

    fn write(
        &self,
        based: &str,
        by: ChangeAuthor<'_>,
        make: impl FnOnce(&str, &[StoredRevision]) -> Result<String, SettingsError>,
    ) -> Result<SettingsReport, SettingsError> {
        // Locked to the end, so that two changes of one text cannot both succeed.
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (old, kept) = (self.text()?, self.disk.kept().map_err(SettingsError::History)?);
        if sum(&old) != based {
            let (found, based) = (sum(&old), based.chars().take(NOTE_CHARS_MAX).collect());
            return Err(SettingsError::Changed { found, based });
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

    fn checked(&self, text: &str) -> Result<Config, SettingsError> {
        if text.len() > TEXT_BYTES_MAX {
            let why =
                format!("the settings have {} bytes, the limit is {TEXT_BYTES_MAX}", text.len());
            return Err(SettingsError::Unwanted(why));
        }
        config::mistakes::checked(text, self.system_kind).map_err(SettingsError::Mistakes)
    }

    /// Adds a revision for a text that was written to the volume without this module.
    fn found(
        &self,
        mut kept: Vec<StoredRevision>,
        text: &str,
    ) -> Result<Vec<StoredRevision>, SettingsError> {
        let known = kept.iter().any(|kept| kept.text == text);
        let nothing = kept.is_empty() && text.is_empty();
        if !known && !nothing {
            let found = StoredRevision {
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

    /// Stores a revision. On a full disk, the oldest revisions are removed first. If space is still
    /// missing, the change continues without a revision, because the change may free space.
    fn keep_one(&self, kept: &[StoredRevision], new: &StoredRevision) -> Result<(), SettingsError> {
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
                tracing::warn!(%error, revision = new.number, "cannot save this revision");
                Ok(())
            }
            kept => kept.map_err(SettingsError::History),
        }
    }

    /// Stores a revision before the text is written to the volume, so that each text on the volume
    /// has a revision. A revision whose text was not written was never in force.
    fn keep(
        &self,
        kept: &[StoredRevision],
        by: ChangeAuthor<'_>,
        text: &str,
    ) -> Result<(), SettingsError> {
        let new = StoredRevision {
            number: next(kept),
            at: Some(self.clock.now()),
            actor: by.actor.to_owned(),
            note: note(by.note),
            text: text.to_owned(),
        };
        self.keep_one(kept, &new)?;
        self.disk.replace(text, new.number).map_err(SettingsError::Volume)?;
        let too_many = (kept.len() + 1).saturating_sub(REVISIONS_MAX);
        for old in kept.iter().take(too_many) {
            if let Err(error) = self.disk.forget(old.number) {
                tracing::warn!(%error, revision = old.number, "cannot delete an old revision");
            }
        }
        Ok(())
    }
}

/// Returns the identifier of a text: the first 16 bytes of its SHA-256, in hexadecimal.
pub fn sum(text: &str) -> String {
    stdx::hex(&Sha256::digest(text)[..16])
}

fn next(kept: &[StoredRevision]) -> u32 {
    kept.iter().map(|kept| kept.number).max().unwrap_or(0).saturating_add(1)
}

fn found(kept: &[StoredRevision], number: u32) -> Result<&StoredRevision, SettingsError> {
    kept.iter().find(|kept| kept.number == number).ok_or(SettingsError::NoRevision(number))
}

/// Removes control characters from a note, and cuts the note to [`NOTE_CHARS_MAX`] characters.
fn note(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(NOTE_CHARS_MAX).collect()
}

fn live(key: &str) -> bool {
    LIVE.iter().any(|live| key == *live || (live.ends_with('.') && key.starts_with(live)))
}

/// Returns the keys whose values differ between two texts. Invalid TOML counts as no keys.
fn changed(old: &str, new: &str) -> Vec<String> {
    let (old, new) = (edit::leaves(old), edit::leaves(new));
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differs = |key: &&&String| old.get(**key) != new.get(**key);
    keys.iter().filter(differs).map(|key| (*key).clone()).collect()
}

#[cfg(test)]
mod tests;
