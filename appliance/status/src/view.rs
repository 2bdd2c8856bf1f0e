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
pub mod trouble;
pub mod work;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::dhcp_client::DhcpClient;
use crate::image::Images;
use crate::log::LogLine;

pub use crate::text::Text;
pub use claim::Claim;
pub use headline::{Headline, headline};
pub use machine::{Machine, MachineState, Power};
pub use nic::{ForeignServer, Nic, Role};
pub use problem::{Problem, problems};
pub use system::{BootStep, Clock, Slot, System, TimeState, Update, UpdateState};
pub use trouble::Trouble;
pub use work::Work;

/// State of the box and its machines at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusView {
    /// Revision of the store that the view shows; also the `id` of an event of the live stream.
    pub revision: u64,
    /// Time of the view. No interface reads a clock of its own.
    pub now: Timestamp,
    /// Name of the box: `box-7f3a`.
    pub name: Text,
    /// Version of the system: `1.4.0`.
    pub version: Text,
    /// Slot that the running system is from: `A`.
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
    /// Steps of the start. All done, or an empty list, means that the box serves.
    pub boot: Vec<BootStep>,
    /// Data to claim the box; `None` if it has an owner.
    pub claim: Option<Claim>,
    /// Clock of the box, and the trust in it.
    pub clock: Clock,
    /// Network interfaces, in the order of their names.
    pub nics: Vec<Nic>,
    /// Machines, in rack order.
    pub machines: Vec<Machine>,
    /// Workflows: running ones first, and the newest of each group first.
    pub workflows: Vec<Work>,
    /// DHCP clients of the last hour, latest first.
    pub heard: Vec<DhcpClient>,
    /// State of the image cache.
    pub images: Images,
    /// Update that is searched for, installed or rolled back.
    pub update: Option<Update>,
    /// Resource figures of the box.
    pub system: System,
    /// Latest events, newest first.
    pub events: Vec<Event>,
    /// Log of the box, oldest line first. The text is not cleaned: see [`crate::plain`].
    pub log: Vec<LogLine>,
    /// Faults of services that no other field shows.
    pub faults: Vec<Fault>,
    /// Bytes per second sent to booting machines: one sample each 5 s, newest last.
    pub boot_traffic: Vec<u64>,
    /// True while the identify LED blinks.
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
    /// Full text of the fault.
    pub trouble: Trouble,
    /// Time of the beginning, if known.
    pub since: Option<Timestamp>,
    /// True if the box cannot do its work.
    pub urgent: bool,
}

impl StatusView {
    /// Current step of the start; `None` once the box serves.
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

    /// Address of the box for people: of the interface that they should use.
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
