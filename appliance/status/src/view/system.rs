//! The box itself: its start, its clock, its slots and updates, its figures.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Text;
use crate::backup::Kept;

/// A step from power to service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootStep {
    /// What is done: `opening the store`.
    pub name: Text,
    /// What it usually takes.
    pub usual_millis: u64,
    /// What it took, or takes so far; `None` before it began.
    pub took_millis: Option<u64>,
    /// It is done.
    pub done: bool,
}

impl BootStep {
    /// It takes longer than usual, and is not done: slow is not broken (FB-6).
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

/// How far the clock can be trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TimeState {
    /// Nobody told the box the time.
    #[default]
    Unset,
    /// Somebody did, a while ago.
    Holdover,
    /// A server tells it.
    Synced,
}

impl TimeState {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            TimeState::Unset => "unset",
            TimeState::Holdover => "holdover",
            TimeState::Synced => "synced",
        }
    }
}

/// The clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Clock {
    /// How far it can be trusted.
    pub state: TimeState,
    /// Who tells the time; may be empty.
    pub source: Text,
    /// The owner's time zone, seconds east of UTC.
    pub utc_offset_seconds: i32,
    /// What it is called now: `CEST`; may be empty.
    pub zone: Text,
}

/// Where an update is (UP-1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UpdateState {
    /// Looking for one.
    #[default]
    Checking,
    /// There is one.
    Available,
    /// It comes.
    Downloading,
    /// It is what its maker signed.
    Verified,
    /// It is written to the other slot.
    Installed,
    /// Machines come first.
    Waiting,
    /// Its hours come, or somebody's word.
    Scheduled,
    /// The box starts anew.
    Restarting,
    /// The new version shows that it works.
    Proving,
    /// It does.
    Good,
    /// It does not, and the old one is back.
    Undone,
}

impl UpdateState {
    /// What happens, in words.
    pub fn words(self) -> &'static str {
        match self {
            UpdateState::Checking => "looking for updates",
            UpdateState::Available => "available",
            UpdateState::Downloading => "downloading",
            UpdateState::Verified => "writing",
            UpdateState::Installed => "ready to restart",
            UpdateState::Waiting => "waiting for machines",
            UpdateState::Scheduled => "waiting to restart",
            UpdateState::Restarting => "restarting",
            UpdateState::Proving => "proving itself",
            UpdateState::Good => "good",
            UpdateState::Undone => "undone",
        }
    }

    /// Something happens that the owner should not cut the power for without need.
    pub fn under_way(self) -> bool {
        use UpdateState::{
            Downloading, Installed, Proving, Restarting, Scheduled, Verified, Waiting,
        };
        let waits = matches!(self, Installed | Scheduled | Waiting);
        waits || matches!(self, Downloading | Verified | Restarting | Proving)
    }
}

/// An update.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Update {
    /// To which version.
    pub version: Text,
    /// Where it is.
    pub state: UpdateState,
    /// How far that is; `None` when nobody knows.
    pub percent: Option<u8>,
    /// The slot it goes to: `B`.
    pub slot: Text,
    /// Why it was undone, as a phrase: `eth1 could not serve (address in use)`; or until when it
    /// waits: `until 02:00 CET`.
    pub reason: Text,
    /// Machines that it waits for.
    pub waits_for: Vec<Text>,
    /// When it came to this.
    pub since: Option<Timestamp>,
}

/// One of the two copies of the system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Slot {
    /// `A` or `B`.
    pub name: Text,
    /// What it holds; empty when nothing.
    pub version: Text,
    /// It has shown that it works.
    pub good: bool,
    /// The box runs from it.
    pub running: bool,
}

/// Figures of the box. What could not be read is `None` or 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct System {
    /// Work of all cores.
    pub cpu_percent: Option<u8>,
    /// Memory in use.
    pub ram_used: u64,
    /// Memory in all.
    pub ram_total: u64,
    /// Bytes of the state partition in use.
    pub disk_used: u64,
    /// Bytes of the state partition in all.
    pub disk_total: u64,
    /// Degrees Celsius.
    pub temperature: Option<i16>,
    /// Share of the flash memory's life that is used up.
    pub flash_life_percent: Option<u8>,
    /// When the last backup was made.
    pub backup_at: Option<Timestamp>,
    /// Backups that the box made itself, the newest first.
    pub kept_backups: Vec<Kept>,
    /// Whether the way out was open lately; `None`: nobody looked.
    pub internet: Option<bool>,
    /// Both slots.
    pub slots: Vec<Slot>,
    /// SHA-256 of the certificate's public key, in hexadecimal.
    pub certificate_sha256: Text,
    /// Rights that the supervisor still has, and what holds it.
    pub confinement: Text,
    /// Accounts of people.
    pub accounts: u32,
    /// Secret keys that a factory reset destroys.
    pub keys: u32,
}

impl System {
    /// Share of the memory that is in use.
    pub fn ram_percent(&self) -> u8 {
        percent(self.ram_used, self.ram_total)
    }

    /// Share of the state partition that is in use.
    pub fn disk_percent(&self) -> u8 {
        percent(self.disk_used, self.disk_total)
    }
}

/// `part` of `whole`, from 0 to 100.
pub fn percent(part: u64, whole: u64) -> u8 {
    let share = u128::from(part.min(whole)) * 100 / u128::from(whole.max(1));
    u8::try_from(share).unwrap_or(100)
}
