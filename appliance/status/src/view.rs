//! The read model of every interface: web page, panel, console, command line.
//!
//! Plain data without a clock: it carries its time. Each subsystem fills its own fields; fields
//! that no subsystem filled are empty, and every interface accepts that. Conclusions are drawn
//! here, once: [`headline`] (the sentence on top), [`problem`] (problems that need a person, most
//! urgent first), [`health`] (the box in a word), [`led`] (the LEDs).

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

use crate::dhcp_client::DhcpClient;
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
    /// Time of the view. No interface reads a clock of its own.
    pub now: Timestamp,
    /// The box's name: `box-7f3a`.
    pub name: Text,
    /// Version of the system: `1.4.0`.
    pub version: Text,
    /// The slot it runs from: `A`.
    pub slot: Text,
    /// Fingerprint of the certificate as people compare it: `F3A9-1C20-8BQK-77TM`.
    pub pin: Text,
    /// Seconds since the start of the system.
    pub uptime_seconds: u64,
    /// Reason of safe mode, as a phrase; empty if the box is not in safe mode.
    pub safe_mode: Text,
    /// True if the state volume cannot be used: owner and machines are unknown. The box is in safe
    /// mode then.
    pub without_state: bool,
    /// The steps from power to service; done all of them, or empty: it serves.
    pub boot: Vec<BootStep>,
    /// Data to claim the box; `None` if it has an owner.
    pub claim: Option<Claim>,
    /// The clock, as far as it can be trusted.
    pub clock: Clock,
    /// Network interfaces, in the order of their names.
    pub nics: Vec<Nic>,
    /// Machines, in rack order.
    pub machines: Vec<Machine>,
    /// Workflows: those that go on first, the newest of each before the others.
    pub workflows: Vec<Work>,
    /// DHCP clients of the last hour, latest first.
    pub heard: Vec<DhcpClient>,
    /// State of the image cache.
    pub images: Images,
    /// The update that is looked for, made or undone.
    pub update: Option<Update>,
    /// Figures of the box itself.
    pub system: System,
    /// Latest events, newest first.
    pub events: Vec<Event>,
    /// Log of the box, oldest line first. The text is not cleaned: see [`crate::plain`].
    pub log: Vec<LogLine>,
    /// Faults of services that no other field shows.
    pub faults: Vec<Fault>,
    /// Bytes a second sent to booting machines, one sample each 5 s, the newest last.
    pub boot_traffic: Vec<u64>,
    /// True while the box blinks to be found.
    pub identifying: bool,
}

/// An event of a machine or of the box.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// Time of the event.
    pub at: Timestamp,
    /// Name of the machine; empty for the box.
    pub subject: Text,
    /// Sentence without the subject.
    pub sentence: Text,
    /// True for an event that needs attention.
    pub warning: bool,
}

/// A fault of the box that no other field shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fault {
    /// Two words for a small screen: `CLOCK LOST`.
    pub title: Text,
    /// The whole of it.
    pub trouble: Trouble,
    /// Time of the beginning, if known.
    pub since: Option<Timestamp>,
    /// True if the box cannot do its work.
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

    /// Time from `at` to the view: `43 s`, `2 days`.
    pub fn since(&self, at: Timestamp) -> String {
        moment::rough(u64::try_from(self.now.duration_since(at).as_secs()).unwrap_or(0))
    }

    /// Age of `at`: `43 s ago`, `2 days ago`.
    pub fn ago(&self, at: Timestamp) -> String {
        moment::ago(at, self.now)
    }
}

#[cfg(test)]
mod tests;
