//! State of the box itself: start, clock, slots, updates and resource figures.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Text;
use crate::backup::StoredBackup;

/// A step from power to service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootStep {
    /// Name of the step: `opening the store`.
    pub name: Text,
    /// Usual duration in milliseconds.
    pub usual_millis: u64,
    /// Duration so far in milliseconds; `None` before it began.
    pub took_millis: Option<u64>,
    /// True if the step is complete.
    pub done: bool,
}

impl BootStep {
    /// True if the step takes longer than usual and is not complete. Slow is not broken (FB-6).
    pub fn slow(&self) -> bool {
        !self.done && self.took_millis.is_some_and(|took| took > self.usual_millis)
    }

    /// `taking longer than usual (usually 2 s, now 9 s): opening the store`, or the name alone.
    pub fn sentence(&self) -> String {
        match self.took_millis.filter(|_| self.slow()) {
            Some(took) => format!(
                "taking longer than usual (usually {} s, now {} s): {}",
                self.usual_millis.div_ceil(1000),
                took / 1000,
                self.name
            ),
            None => self.name.to_string(),
        }
    }
}

/// Trust in the clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TimeState {
    /// The clock was never set.
    #[default]
    Unset,
    /// The clock was set, but has no source now.
    Holdover,
    /// A time server sets the clock.
    Synced,
}

impl TimeState {
    /// Word for the state.
    pub fn word(self) -> &'static str {
        match self {
            TimeState::Unset => "unset",
            TimeState::Holdover => "holdover",
            TimeState::Synced => "synced",
        }
    }
}

/// State of the box's clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Clock {
    /// Trust in the clock.
    pub state: TimeState,
    /// Source of the time; may be empty.
    pub source: Text,
    /// Offset of the owner's time zone, in seconds east of UTC.
    pub utc_offset_seconds: i32,
    /// Abbreviation of the time zone: `CEST`; may be empty.
    pub zone: Text,
}

/// State of an update (UP-1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UpdateState {
    /// Checking for an update.
    #[default]
    Checking,
    /// An update is available.
    Available,
    /// The download is in progress.
    Downloading,
    /// The signature of the bundle is valid.
    Verified,
    /// The update is written to the other slot.
    Installed,
    /// Waiting until no machine is in use.
    Waiting,
    /// Waiting for the configured hours, or for a person.
    Scheduled,
    /// The box restarts into the update.
    Restarting,
    /// The new version runs on trial.
    Proving,
    /// The new version works.
    Good,
    /// The new version failed, and the old one runs again.
    #[serde(rename = "undone")]
    RolledBack,
}

impl UpdateState {
    /// State of the update in words.
    pub fn words(self) -> &'static str {
        match self {
            UpdateState::Checking => "checking for updates",
            UpdateState::Available => "available",
            UpdateState::Downloading => "downloading",
            UpdateState::Verified => "writing",
            UpdateState::Installed => "ready to restart",
            UpdateState::Waiting => "waiting for machines",
            UpdateState::Scheduled => "waiting to restart",
            UpdateState::Restarting => "restarting",
            UpdateState::Proving => "testing the new version",
            UpdateState::Good => "good",
            UpdateState::RolledBack => "rolled back",
        }
    }

    /// True for a state in which the owner should not cut the power.
    pub fn under_way(self) -> bool {
        use UpdateState::{
            Downloading, Installed, Proving, Restarting, Scheduled, Verified, Waiting,
        };
        let waits = matches!(self, Installed | Scheduled | Waiting);
        waits || matches!(self, Downloading | Verified | Restarting | Proving)
    }
}

/// An update of the box's system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Update {
    /// Version that is installed.
    pub version: Text,
    /// State of the update.
    pub state: UpdateState,
    /// Progress of the state in percent; `None` if unknown.
    pub percent: Option<u8>,
    /// Slot that the update is written to: `B`.
    pub slot: Text,
    /// Reason of the rollback, as a phrase: `eth1 could not serve (address in use)`; or the end of
    /// the wait: `until 02:00 CET`.
    pub reason: Text,
    /// Machines that the update waits for.
    pub waits_for: Vec<Text>,
    /// Time at which the state began.
    pub since: Option<Timestamp>,
}

/// Copy of the system; the box has two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Slot {
    /// Name of the slot: `A` or `B`.
    pub name: Text,
    /// Version in the slot; empty if it holds none.
    pub version: Text,
    /// True if the version has proven that it works.
    pub good: bool,
    /// True if the box runs from this slot.
    pub running: bool,
}

/// Resource figures of the box. A figure that could not be read is `None` or 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct System {
    /// Load of all cores.
    pub cpu_percent: Option<u8>,
    /// Bytes of memory in use.
    pub ram_used: u64,
    /// Bytes of memory in total.
    pub ram_total: u64,
    /// Bytes of the state partition in use.
    pub disk_used: u64,
    /// Size of the state partition in bytes.
    pub disk_total: u64,
    /// Temperature in degrees Celsius.
    pub temperature: Option<i16>,
    /// Used share of the flash memory's life.
    pub flash_life_percent: Option<u8>,
    /// Time of the last backup.
    pub backup_at: Option<Timestamp>,
    /// Backups that the box made itself, newest first.
    pub kept_backups: Vec<StoredBackup>,
    /// True if the internet was reachable lately; `None` if not checked.
    pub internet: Option<bool>,
    /// System slots, A and B.
    pub slots: Vec<Slot>,
    /// SHA-256 of the certificate's public key, in hexadecimal.
    pub certificate_sha256: Text,
    /// Rights that the supervisor still has, and what holds it.
    pub confinement: Text,
    /// Number of user accounts.
    pub accounts: u32,
    /// Secret keys that a factory reset destroys.
    pub keys: u32,
}

impl System {
    /// Used share of the memory.
    pub fn ram_percent(&self) -> u8 {
        percent(self.ram_used, self.ram_total)
    }

    /// Used share of the state partition.
    pub fn disk_percent(&self) -> u8 {
        percent(self.disk_used, self.disk_total)
    }
}

/// Share of `part` in `whole`, from 0 to 100.
pub fn percent(part: u64, whole: u64) -> u8 {
    let share = u128::from(part.min(whole)) * 100 / u128::from(whole.max(1));
    u8::try_from(share).unwrap_or(100)
}
