//! A machine, as every face shows it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stdx::MacAddr;

use super::{Text, Trouble};
use crate::words::{Shape, Tone, Word};

/// The word for a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MachineState {
    /// Seen, and no Hardware has its address.
    #[default]
    New,
    /// Known, and nothing is to be done with it.
    Ready,
    /// Something is to be done, and something else comes first.
    Waiting,
    /// On its way to the agent.
    Booting,
    /// The agent works.
    Installing,
    /// What was to be done is done.
    InService,
    /// It failed.
    Failed,
    /// It took too long.
    TimedOut,
    /// It should have said something and did not.
    Silent,
    /// Off, and nothing is expected of it.
    Off,
    /// A person paused it.
    Held,
    /// It is being wiped or deleted.
    Removing,
}

/// Every state, in the order of the table.
pub const STATES: [MachineState; 12] = [
    MachineState::New,
    MachineState::Ready,
    MachineState::Waiting,
    MachineState::Booting,
    MachineState::Installing,
    MachineState::InService,
    MachineState::Failed,
    MachineState::TimedOut,
    MachineState::Silent,
    MachineState::Off,
    MachineState::Held,
    MachineState::Removing,
];

impl MachineState {
    /// The state's word, for people.
    pub fn word(self) -> Word {
        let (text, tone) = match self {
            MachineState::New => ("New", Tone::Quiet),
            MachineState::Ready => ("Ready", Tone::Good),
            MachineState::Waiting => ("Waiting", Tone::Waiting),
            MachineState::Booting => ("Booting", Tone::Busy),
            MachineState::Installing => ("Installing", Tone::Busy),
            MachineState::InService => ("In service", Tone::Good),
            MachineState::Failed => ("Failed", Tone::Bad),
            MachineState::TimedOut => ("Timed out", Tone::Bad),
            MachineState::Silent => ("Silent", Tone::Waiting),
            MachineState::Off => ("Off", Tone::Quiet),
            MachineState::Held => ("Held", Tone::Quiet),
            MachineState::Removing => ("Removing", Tone::Waiting),
        };
        Word { text, tone }
    }

    /// The state's shape.
    pub fn shape(self) -> Shape {
        match self {
            MachineState::New => Shape::DottedRing,
            MachineState::Ready => Shape::FilledDot,
            MachineState::Waiting => Shape::HalfDot,
            MachineState::Booting => Shape::Triangle,
            MachineState::Installing => Shape::Arc,
            MachineState::InService => Shape::Tick,
            MachineState::Failed => Shape::Cross,
            MachineState::TimedOut => Shape::CrossClock,
            MachineState::Silent => Shape::Question,
            MachineState::Off => Shape::Ring,
            MachineState::Held => Shape::Bars,
            MachineState::Removing => Shape::Minus,
        }
    }
}

/// Whether it is switched on, as far as its BMC says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Power {
    /// Nobody knows.
    #[default]
    Unknown,
    /// On.
    On,
    /// Off.
    Off,
}

impl Power {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            Power::Unknown => "unknown",
            Power::On => "on",
            Power::Off => "off",
        }
    }
}

/// A machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Machine {
    /// Its name; its hardware address while it has none.
    pub name: Text,
    /// How it is.
    pub state: MachineState,
    /// It is silent for longer than any machine should be.
    pub overdue: bool,
    /// What it does or waits for: `image2disk`, `waits for BMC`; may be empty.
    pub step: Text,
    /// How far the step is; `None` when nobody knows.
    pub percent: Option<u8>,
    /// Bytes of the step that are done.
    pub bytes_done: u64,
    /// Bytes of the step in all; 0 when nobody knows.
    pub bytes_total: u64,
    /// Bytes a second.
    pub bytes_per_second: Option<u64>,
    /// Time that the step still takes.
    pub millis_left: Option<u64>,
    /// Its hardware address.
    pub mac: Option<MacAddr>,
    /// Its address; may be empty.
    pub ip: Text,
    /// Whether it is on.
    pub power: Power,
    /// Its workflow; may be empty.
    pub workflow: Text,
    /// Which try of the step this is.
    pub attempt: u32,
    /// How many there are.
    pub attempts_max: u32,
    /// Its latest boot as sentences, the newest last.
    pub story: Vec<Sentence>,
    /// What went wrong.
    pub trouble: Option<Trouble>,
    /// Since when it is in this state.
    pub since: Option<Timestamp>,
    /// When it was heard last.
    pub last_seen: Option<Timestamp>,
}

/// A line of a machine's story.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sentence {
    /// When.
    pub at: Timestamp,
    /// What, with the machine as the unsaid subject.
    pub text: Text,
    /// Somebody should look at it.
    pub warning: bool,
}

impl Machine {
    /// Its word's tone: silence is bad only past its limit.
    pub fn tone(&self) -> Tone {
        match self.state {
            MachineState::Silent if self.overdue => Tone::Bad,
            state => state.word().tone,
        }
    }

    /// A person has to look at it.
    pub fn needs_person(&self) -> bool {
        self.tone() == Tone::Bad
    }

    /// Its word with the figure that belongs to it: `Installing 68 %`.
    pub fn status(&self) -> String {
        let word = self.state.word().text;
        match (self.state, self.percent) {
            (MachineState::Installing, Some(percent)) => format!("{word} {} %", percent.min(100)),
            _ => word.to_owned(),
        }
    }

    /// Its workflow is at work: it boots, installs, or waits for something in particular.
    pub fn under_way(&self) -> bool {
        match self.state {
            MachineState::Booting | MachineState::Installing => true,
            MachineState::Waiting => !self.step.is_empty(),
            _ => false,
        }
    }

    /// Its turn has not come.
    pub fn queued(&self) -> bool {
        self.state == MachineState::Waiting && self.step.is_empty()
    }

    /// It is well, and nothing happens to it.
    pub fn settled(&self) -> bool {
        matches!(self.state, MachineState::Ready | MachineState::InService)
    }
}
