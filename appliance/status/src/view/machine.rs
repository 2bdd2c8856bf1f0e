//! Machine in the status view.

mod boot;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stdx::MacAddr;

use super::{Text, Trouble};
use crate::words::{Shape, Tone, Word};

/// State of a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MachineState {
    /// The machine sent a request, and no Hardware has its MAC address.
    #[default]
    New,
    /// The machine has Hardware and no work.
    Ready,
    /// The machine has work that cannot begin yet.
    Waiting,
    /// The machine boots into the agent.
    Booting,
    /// The agent runs actions.
    Installing,
    /// The work on the machine is done.
    InService,
    /// The work on the machine failed.
    Failed,
    /// A person canceled the work on the machine.
    Canceled,
    /// The work exceeded its time limit.
    TimedOut,
    /// The machine has not reported in time.
    Silent,
    /// The machine is off, as expected.
    Off,
    /// A person paused the machine.
    Held,
    /// The machine is being wiped or deleted.
    Removing,
}

/// All states, in their order of declaration.
pub const STATES: [MachineState; 13] = [
    MachineState::New,
    MachineState::Ready,
    MachineState::Waiting,
    MachineState::Booting,
    MachineState::Installing,
    MachineState::InService,
    MachineState::Failed,
    MachineState::Canceled,
    MachineState::TimedOut,
    MachineState::Silent,
    MachineState::Off,
    MachineState::Held,
    MachineState::Removing,
];

impl MachineState {
    /// Returns the state as a word for people, with its tone.
    pub fn word(self) -> Word {
        let (text, tone) = match self {
            MachineState::New => ("New", Tone::Quiet),
            MachineState::Ready => ("Ready", Tone::Good),
            MachineState::Waiting => ("Waiting", Tone::Waiting),
            MachineState::Booting => ("Booting", Tone::Busy),
            MachineState::Installing => ("Installing", Tone::Busy),
            MachineState::InService => ("In service", Tone::Good),
            MachineState::Failed => ("Failed", Tone::Bad),
            MachineState::Canceled => ("Canceled", Tone::Quiet),
            MachineState::TimedOut => ("Timed out", Tone::Bad),
            MachineState::Silent => ("Silent", Tone::Waiting),
            MachineState::Off => ("Off", Tone::Quiet),
            MachineState::Held => ("Paused", Tone::Quiet),
            MachineState::Removing => ("Removing", Tone::Waiting),
        };
        Word { text, tone }
    }

    /// Returns the shape that is drawn beside the word.
    pub fn shape(self) -> Shape {
        match self {
            MachineState::New => Shape::DottedRing,
            MachineState::Ready => Shape::FilledDot,
            MachineState::Waiting => Shape::HalfDot,
            MachineState::Booting => Shape::Triangle,
            MachineState::Installing => Shape::Arc,
            MachineState::InService => Shape::Tick,
            MachineState::Failed => Shape::Cross,
            MachineState::Canceled => Shape::SlashedRing,
            MachineState::TimedOut => Shape::CrossClock,
            MachineState::Silent => Shape::Question,
            MachineState::Off => Shape::Ring,
            MachineState::Held => Shape::Bars,
            MachineState::Removing => Shape::Minus,
        }
    }
}

/// Power state, as the BMC reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Power {
    /// The power state is not known, such as without a BMC.
    #[default]
    Unknown,
    /// The machine is powered on.
    On,
    /// The machine is powered off.
    Off,
}

impl Power {
    /// Returns the power state as a word for people.
    pub fn word(self) -> &'static str {
        match self {
            Power::Unknown => "unknown",
            Power::On => "on",
            Power::Off => "off",
        }
    }
}

/// Machine with its state and its current work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Machine {
    /// Name of the machine; its MAC address if it has no name.
    pub name: Text,
    /// State of the machine.
    pub state: MachineState,
    /// True if the machine has been silent for at least 10 minutes or after two boots, so that a
    /// person must act.
    pub overdue: bool,
    /// Current step: `image2disk`, `waits for BMC`; may be empty.
    pub step: Text,
    /// Progress of the step in percent; `None` if unknown.
    pub percent: Option<u8>,
    /// Bytes of the step that are done.
    pub bytes_done: u64,
    /// Bytes of the step in total; 0 if unknown.
    pub bytes_total: u64,
    /// Throughput in bytes per second.
    pub bytes_per_second: Option<u64>,
    /// Remaining time of the step, in milliseconds.
    pub millis_left: Option<u64>,
    /// MAC address of the machine's first interface.
    pub mac: Option<MacAddr>,
    /// Maker and product of the machine, as its agent reported them; may be empty.
    pub model: Text,
    /// IP address of the machine; may be empty.
    pub ip: Text,
    /// Power state of the machine.
    pub power: Power,
    /// Reason of the power state; may be empty.
    pub power_reason: Text,
    /// True if the Hardware names a BMC, so that the box can switch the machine.
    pub has_bmc: bool,
    /// Name of the machine's workflow; may be empty.
    pub workflow: Text,
    /// Number of the current attempt at the step.
    pub attempt: u32,
    /// Maximum number of attempts at the step.
    pub attempts_max: u32,
    /// Events of the latest boot as sentences, newest last.
    pub story: Vec<Sentence>,
    /// True if a person dismissed the failure of the work.
    pub dismissed: bool,
    /// Failure of the work on the machine, if any.
    pub trouble: Option<Trouble>,
    /// Time at which the state began.
    pub since: Option<Timestamp>,
    /// Time of the machine's last request.
    pub last_seen: Option<Timestamp>,
}

/// Returns maker and product of a machine from the attributes of its agent, which are JSON. Returns
/// an empty text without them.
pub fn model(attributes: Option<impl AsRef<str>>) -> String {
    let attributes = attributes.and_then(|text| serde_json::from_str(text.as_ref()).ok());
    let attributes: Value = attributes.unwrap_or_default();
    let product = &attributes["product"];
    let words = ["vendor", "name"].map(|key| product[key].as_str().unwrap_or_default());
    crate::plain(words.join(" ").trim())
}

/// Line of a machine's history.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sentence {
    /// Time of the event.
    pub at: Timestamp,
    /// Sentence without the machine as subject.
    pub text: Text,
    /// True for an event that needs attention.
    pub warning: bool,
}

impl Machine {
    /// Returns the tone of the state. A silent machine is bad only if it is `overdue`. A dismissed
    /// failure is quiet.
    pub fn tone(&self) -> Tone {
        match self.state {
            MachineState::Failed | MachineState::TimedOut if self.dismissed => Tone::Quiet,
            MachineState::Silent if self.overdue => Tone::Bad,
            state => state.word().tone,
        }
    }

    /// Returns true if a person must act: the tone is bad.
    pub fn needs_person(&self) -> bool {
        self.tone() == Tone::Bad
    }

    /// Formats the state with its progress: `Installing 68 %`.
    pub fn status(&self) -> String {
        let word = self.state.word().text;
        match (self.state, self.percent) {
            (MachineState::Installing, Some(percent)) => format!("{word} {} %", percent.min(100)),
            _ => word.to_owned(),
        }
    }

    /// Returns true if the machine boots, installs, or waits at a named step.
    pub fn under_way(&self) -> bool {
        match self.state {
            MachineState::Booting | MachineState::Installing => true,
            MachineState::Waiting => !self.step.is_empty(),
            _ => false,
        }
    }

    /// Returns true if the machine has work that has not ended.
    pub fn is_expected(&self) -> bool {
        use MachineState::{Booting, Installing, Silent, Waiting};
        matches!(self.state, Waiting | Booting | Installing | Silent)
    }

    /// Returns true if the machine waits and its work has not begun.
    pub fn queued(&self) -> bool {
        self.state == MachineState::Waiting && self.step.is_empty()
    }

    /// Returns true if the machine is ready or in service, so no work is in progress.
    pub fn settled(&self) -> bool {
        matches!(self.state, MachineState::Ready | MachineState::InService)
    }
}
