//! State of the box itself: start, clock, slots, updates and resource figures.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Text;
use crate::backup::StoredBackup;

/// Step of the box's start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootStep {
    /// Name of the step: `opening the store`.
    pub name: Text,
    /// Usual duration in milliseconds.
    pub usual_millis: u64,
    /// Duration so far in milliseconds; `None` if the step has not begun.
    pub took_millis: Option<u64>,
    /// True if the step is complete.
    pub done: bool,
}

impl BootStep {
    /// Returns true if the step is incomplete after its usual time, which is not an error (FB-6).
    pub fn slow(&self) -> bool {
        !self.done && self.took_millis.is_some_and(|took| took > self.usual_millis)
    }

    /// Formats `taking longer than usual (usually 2 s, now 9 s): opening the store`, or the name.
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

/// State of the clock's synchronization.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TimeState {
    /// The clock was never set.
    #[default]
    Unset,
    /// The clock was set earlier, but no time source is reachable now.
    Holdover,
    /// The clock follows a time server.
    Synced,
}

impl TimeState {
    /// Returns the state as a word for people.
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
    /// State of the clock's synchronization.
    pub state: TimeState,
    /// Time source, such as the address of an NTP server; may be empty.
    pub source: Text,
    /// Offset of the owner's time zone, in seconds east of UTC.
    pub utc_offset_seconds: i32,
    /// Abbreviation of the time zone: `CEST`; may be empty.
    pub zone: Text,
}

/// Daily backup on another server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupTarget {
    /// Host and port of the server.
    pub host: Text,
    /// Time of the newest backup there; `None` if there is none yet.
    pub at: Option<Timestamp>,
    /// Size of the newest backup in bytes.
    pub bytes: u64,
    /// Reason why the last attempt failed, as a sentence; empty if it succeeded.
    pub failure: Text,
    /// Time of the first failure since the last success.
    pub failed_since: Option<Timestamp>,
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
    /// Waiting for the configured hours, or for a restart by a person.
    Scheduled,
    /// The box restarts into the update.
    Restarting,
    /// The new version runs and tests itself; a failure rolls back.
    Proving,
    /// The new version has passed its test.
    Good,
    /// The new version failed its test, and the previous version runs again.
    #[serde(rename = "undone")]
    RolledBack,
}

impl UpdateState {
    /// Returns the state in words for people.
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

    /// Returns true from download to end of test. The owner should not cut the power then.
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
    /// Version of the update.
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

/// System partition. The box has two, so that an update can be rolled back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Slot {
    /// Name of the slot: `A` or `B`.
    pub name: Text,
    /// Version in the slot; empty if the slot is empty.
    pub version: Text,
    /// True if the version has passed its test.
    pub good: bool,
    /// True if the box runs from this slot.
    pub running: bool,
}

/// Resource figures of the box. A figure that could not be read is `None` or 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct System {
    /// CPU load of all cores together, in percent.
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
    /// Used share of the flash memory's lifetime, in percent.
    pub flash_life_percent: Option<u8>,
    /// Time of the last backup that was downloaded completely. Backups that stay on the box do not
    /// count; see `kept_backups`.
    pub backup_at: Option<Timestamp>,
    /// Daily backup on another server; `None` if it is not configured.
    pub backup_target: Option<BackupTarget>,
    /// Backups that the box made itself, newest first.
    pub kept_backups: Vec<StoredBackup>,
    /// True if the internet was reachable lately; `None` if not checked.
    pub internet: Option<bool>,
    /// System slots, A and B.
    pub slots: Vec<Slot>,
    /// SHA-256 of the certificate's public key, in hexadecimal.
    pub certificate_sha256: Text,
    /// Capabilities that the supervisor keeps, and the sandbox that limits it, as text.
    pub confinement: Text,
    /// Number of user accounts.
    pub accounts: u32,
    /// Number of secret keys that a factory reset destroys.
    pub keys: u32,
}

impl System {
    /// Returns the used share of the memory in percent.
    pub fn ram_percent(&self) -> u8 {
        percent(self.ram_used, self.ram_total)
    }

    /// Returns the used share of the state partition in percent.
    pub fn disk_percent(&self) -> u8 {
        percent(self.disk_used, self.disk_total)
    }
}

/// Returns `part` in percent of `whole`, from 0 to 100; 0 if `whole` is 0.
pub fn percent(part: u64, whole: u64) -> u8 {
    let share = u128::from(part.min(whole)) * 100 / u128::from(whole.max(1));
    u8::try_from(share).unwrap_or(100)
}
