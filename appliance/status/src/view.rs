//! The one read model of every face: web page, panel, console, command line.
//!
//! Plain data without a clock: it carries the time it was taken at. Whoever knows something fills
//! its field; what nobody filled is empty and every face can live with that. What follows from the
//! data is decided here, once: [`headline`] (the sentence on top), [`problem`] (what needs a
//! person, the most urgent first), [`health`] (the box in a word), [`led`] (the lights).

pub mod claim;
pub mod example;
pub mod headline;
pub mod health;
pub mod led;
pub mod machine;
pub mod moment;
pub mod nic;
pub mod problem;
pub mod system;
pub mod text;
pub mod trouble;
pub mod work;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::heard::Heard;
use crate::image::Images;
use crate::log::LogLine;

pub use claim::Claim;
pub use headline::{Headline, headline};
pub use machine::{Machine, MachineState, Power};
pub use nic::{ForeignServer, Nic, Role};
pub use problem::{Problem, problems};
pub use system::{BootStep, Clock, Slot, System, TimeState, Update, UpdateState};
pub use text::Text;
pub use trouble::Trouble;
pub use work::Work;

/// The box and its machines at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusView {
    /// The store's revision that it shows; the `id` of an event of the live stream.
    pub revision: u64,
    /// When it was taken. No face asks a clock of its own.
    pub now: Timestamp,
    /// The box's name: `box-7f3a`.
    pub name: Text,
    /// Its version: `1.4.0`.
    pub version: Text,
    /// The slot it runs from: `A`.
    pub slot: Text,
    /// Fingerprint of the certificate as people compare it: `F3A9-1C20-8BQK-77TM`.
    pub pin: Text,
    /// How long the box is up.
    pub uptime_seconds: u64,
    /// Why the box is in safe mode, as a phrase; empty when it is not.
    pub safe_mode: Text,
    /// The box's state volume cannot be used, so it knows nothing of its owner and its machines.
    /// It is in safe mode then, which says why.
    pub without_state: bool,
    /// The steps from power to service; done all of them, or empty: it serves.
    pub boot: Vec<BootStep>,
    /// What a person needs to make the box theirs; `None` when it has an owner.
    pub claim: Option<Claim>,
    /// The clock, as far as it can be trusted.
    pub clock: Clock,
    /// Network interfaces, in the order of their names.
    pub nics: Vec<Nic>,
    /// Machines, in rack order.
    pub machines: Vec<Machine>,
    /// Workflows: those that go on first, the newest of each before the others.
    pub workflows: Vec<Work>,
    /// Who asked for an address lately, and what became of it; who asked last first.
    pub heard: Vec<Heard>,
    /// The cache.
    pub images: Images,
    /// The update that is looked for, made or undone.
    pub update: Option<Update>,
    /// Figures of the box itself.
    pub system: System,
    /// What happened lately, the newest first.
    pub events: Vec<Event>,
    /// The box's own log, the oldest line first. Its text is as it was said: see
    /// [`crate::story::plain`].
    pub log: Vec<LogLine>,
    /// What services report wrong beyond what the other fields tell.
    pub faults: Vec<Fault>,
    /// Bytes a second sent to booting machines, one sample each 5 s, the newest last.
    pub boot_traffic: Vec<u64>,
    /// Somebody looks for the box: blink.
    pub identifying: bool,
}

/// Something that happened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// To whom: a machine's name, or empty for the box.
    pub subject: Text,
    /// What, with the subject unsaid.
    pub sentence: Text,
    /// Somebody should look at it.
    pub warning: bool,
}

/// Something wrong with the box that no other field tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fault {
    /// Two words for a small screen: `CLOCK LOST`.
    pub title: Text,
    /// The whole of it.
    pub trouble: Trouble,
    /// Since when.
    pub since: Option<Timestamp>,
    /// It stops the box from doing its work.
    pub urgent: bool,
}

impl StatusView {
    /// The step that the start of the box is at; `None` when it serves.
    pub fn starting(&self) -> Option<&BootStep> {
        self.boot.iter().find(|step| !step.done)
    }

    /// Machines in one of `states`.
    pub fn count(&self, states: &[MachineState]) -> usize {
        self.machines.iter().filter(|machine| states.contains(&machine.state)).count()
    }

    /// Machines that are switched on.
    pub fn powered_on(&self) -> usize {
        self.machines.iter().filter(|machine| machine.power == Power::On).count()
    }

    /// The address to tell people: of the interface they should use.
    pub fn address(&self) -> Option<(&Nic, &str)> {
        let person = |nic: &&Nic| matches!(nic.role, Role::Management | Role::Both);
        let mut nics = self.nics.iter().filter(|nic| nic.address().is_some());
        let nic = nics.clone().find(person).or_else(|| nics.next())?;
        Some((nic, nic.address()?))
    }

    /// Time of day, `14:02`, in the owner's time zone.
    pub fn time_of_day(&self, at: Timestamp) -> String {
        moment::time_of_day(at, self.clock.utc_offset_seconds)
    }

    /// How long it is since `at`: `43 s`, `2 days`.
    pub fn since(&self, at: Timestamp) -> String {
        moment::rough(u64::try_from(self.now.duration_since(at).as_secs()).unwrap_or(0))
    }

    /// How long ago `at` was: `43 s ago`, `2 days ago`.
    pub fn ago(&self, at: Timestamp) -> String {
        moment::ago(at, self.now)
    }
}

#[cfg(test)]
mod tests;
