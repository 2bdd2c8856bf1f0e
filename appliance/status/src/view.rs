//! Read model of all interfaces: web page, panel, console and command line.
//!
//! Plain data with the time of the view; no code here reads a clock. Each subsystem fills its own
//! fields. Every interface accepts empty fields. All interfaces share the conclusions: [`headline`]
//! (summary in a sentence), [`problem`] (problems that need a person, most urgent first),
//! [`health`] (summary in a word), [`led`] (LED patterns).

pub mod claim;
pub mod cluster_api;
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
use stdx::MacAddr;

use crate::dhcp_client::DhcpClient;
use crate::image::{Image, Images};
use crate::log::LogLine;

pub use crate::text::Text;
pub use claim::Claim;
pub use cluster_api::{ClusterApi, ClusterMachine, PairedCluster};
pub use headline::{Headline, headline};
pub use machine::{Machine, MachineState, Power};
pub use nic::{ForeignServer, Nic, Role};
pub use problem::{Problem, problems};
pub use system::{BackupTarget, BootStep, Clock, Slot, System, TimeState, Update, UpdateState};
pub use trouble::Trouble;
pub use work::Work;

/// Code of the trouble of a machine whose image cannot be fetched.
const IMAGE_FAILED: &str = "ImageFailed";

/// State of the box and its machines at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusView {
    /// Store revision of the view; also the `id` of its event in the live stream (SSE).
    pub revision: u64,
    /// Time of the view. Interfaces use this time instead of a clock.
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
    /// Steps of the start. The box serves if all steps are done or the list is empty.
    pub boot: Vec<BootStep>,
    /// Data to claim the box; `None` if the box has an owner.
    pub claim: Option<Claim>,
    /// Clock of the box, with the state of its synchronization.
    pub clock: Clock,
    /// Network interfaces, in the order of their names.
    pub nics: Vec<Nic>,
    /// Machines, in rack order.
    pub machines: Vec<Machine>,
    /// Workflows: running ones first, and the newest of each group first.
    pub workflows: Vec<Work>,
    /// DHCP clients of the last hour, latest first.
    pub heard: Vec<DhcpClient>,
    /// MAC addresses that a person ignores. They are not among `machines` while they are unknown.
    pub ignored: Vec<MacAddr>,
    /// Keys of the notices that a person dismissed, as in [`Problem::key`].
    pub dismissed: Vec<Text>,
    /// State of the image cache.
    pub images: Images,
    /// Management clusters of Cluster API, and their machines.
    pub cluster_api: ClusterApi,
    /// Update in progress or the last one; `None` if there was no update.
    pub update: Option<Update>,
    /// Resource figures of the box.
    pub system: System,
    /// Latest events of machines and box, newest first.
    pub events: Vec<Event>,
    /// Log of the box, oldest line first. The text may contain control characters: see
    /// [`crate::plain`].
    pub log: Vec<LogLine>,
    /// Faults of the box that no other field contains.
    pub faults: Vec<Fault>,
    /// Bytes per second sent to booting machines: one sample each 5 s, newest last.
    pub boot_traffic: Vec<u64>,
    /// True while the identify LED blinks.
    pub identifying: bool,
}

/// Event of a machine or of the box.
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

/// Fault of the box that no other field contains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fault {
    /// Two words for a small screen: `CLOCK LOST`.
    pub title: Text,
    /// Full text of the fault.
    pub trouble: Trouble,
    /// Time of the beginning, if known.
    pub since: Option<Timestamp>,
    /// True if the fault stops the service for machines, as [`problem::Urgency::Box`].
    pub urgent: bool,
}

impl StatusView {
    /// Makes each failed image the trouble of the machines that wait for it.
    pub fn explain_images(&mut self) {
        let failed = |image: &&Image| !image.message.is_empty();
        for image in self.images.items.iter().filter(failed) {
            let waits = |machine: &Machine| {
                let names = image.workflows.iter().filter_map(|it| it.rsplit('/').next());
                machine.is_expected() && names.into_iter().any(|it| machine.workflow == it.into())
            };
            for machine in self.machines.iter_mut().filter(|machine| waits(machine)) {
                machine.trouble.get_or_insert_with(|| Trouble {
                    what: format!("Image {} cannot be fetched", image.origin).into(),
                    why: image.reason().into(),
                    now: "Check the address of the image, its server, and that this box reaches \
                          the server and a name server"
                        .into(),
                    code: IMAGE_FAILED.into(),
                    ..Trouble::default()
                });
            }
        }
    }

    /// Returns the current step of the start; `None` if the box serves.
    pub fn starting(&self) -> Option<&BootStep> {
        self.boot.iter().find(|step| !step.done)
    }

    /// Returns the number of machines in any of `states`.
    pub fn count(&self, states: &[MachineState]) -> usize {
        self.machines.iter().filter(|machine| states.contains(&machine.state)).count()
    }

    /// Returns the number of machines that are powered on.
    pub fn powered_on(&self) -> usize {
        self.machines.iter().filter(|machine| machine.power == Power::On).count()
    }

    /// Returns the address for people: of a management NIC, else of any NIC; `None` without one.
    pub fn address(&self) -> Option<(&Nic, &str)> {
        let person = |nic: &&Nic| matches!(nic.role, Role::Management | Role::Both);
        let mut nics = self.nics.iter().filter(|nic| nic.address().is_some());
        let nic = nics.clone().find(person).or_else(|| nics.next())?;
        Some((nic, nic.address()?))
    }

    /// Formats a time of day in the owner's time zone: `14:02`.
    pub fn time_of_day(&self, at: Timestamp) -> String {
        moment::time_of_day(at, self.clock.utc_offset_seconds)
    }

    /// Formats the time from `at` to the time of the view: `43 s`, `2 days`.
    pub fn since(&self, at: Timestamp) -> String {
        moment::rough(u64::try_from(self.now.duration_since(at).as_secs()).unwrap_or(0))
    }

    /// Formats the age of `at`: `43 s ago`, `2 days ago`.
    pub fn ago(&self, at: Timestamp) -> String {
        moment::ago(at, self.now)
    }
}

#[cfg(test)]
mod tests;
