//! A machine's Events in order, with their offsets, and the times between the milestones of a boot.

mod booting;
mod silence;
mod times;

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::boot_event::reason;
use crate::plain;

pub use booting::{booting, power_ons};
pub use silence::{Silence, silence};
pub use times::{Span, times};

/// Pause between two events after which a new boot begins, if no power-on was recorded.
const SILENCE: SignedDuration = SignedDuration::from_mins(30);
/// Maximum time between a power-on and the earlier steps that prepared the power-on.
const PREPARATION: SignedDuration = SignedDuration::from_mins(2);

/// Fields of a core/v1 Event that a history needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Time of the event.
    pub at: Timestamp,
    /// Store revision of the Event; sorts events of the same microsecond.
    pub revision: u64,
    /// Kind of the object that the Event is about.
    pub kind: String,
    /// Name of the object that the Event is about.
    pub name: String,
    /// Reason code of the Event; stable across releases.
    pub reason: String,
    /// Message of the Event, for people.
    pub message: String,
    /// True for an event that needs attention.
    pub warning: bool,
}

/// Line of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Milliseconds since the power-on, or since the first line. Negative for the steps that
    /// prepared the power-on.
    pub offset_millis: i64,
    /// Time of the event.
    pub at: Timestamp,
    /// Reason code of the Event; stable across releases.
    pub reason: String,
    /// Sentence about the event, for people.
    pub sentence: String,
    /// True for an event that needs attention.
    pub warning: bool,
    /// Kind of the object that the Event is about.
    #[serde(skip)]
    pub kind: String,
    /// Name of the object that the Event is about.
    #[serde(skip)]
    pub name: String,
    /// Store revision of the Event.
    #[serde(skip)]
    pub revision: u64,
}

/// Outcome that ends a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The installed system is up.
    PhonedHome,
    /// The work on the machine failed.
    Failed,
}

impl Line {
    /// Returns the outcome if this line ends the history. A failed action is recorded on the
    /// Hardware; a failed boot or a timeout is recorded on the Workflow.
    pub fn end(&self) -> Option<Outcome> {
        match (self.kind.as_str(), self.reason.as_str()) {
            ("Hardware", reason::PHONED_HOME) => Some(Outcome::PhonedHome),
            ("Hardware", reason::ACTION_FAILED) => Some(Outcome::Failed),
            ("Workflow", "BootFailed" | "Timeout") => Some(Outcome::Failed),
            _ => None,
        }
    }
}

impl EventRecord {
    /// Returns true for an event that the machine itself caused, by a request or a report.
    pub fn is_of_machine(&self) -> bool {
        use reason::{
            ACTION_FAILED, ACTION_SUCCEEDED, AGENT_STARTED, ASKED_FOR_ADDRESS, ASKED_METADATA,
            FETCHED_INITRD, FETCHED_KERNEL, FETCHED_LOADER, FETCHED_SCRIPT, GOT_ADDRESS,
            PHONED_HOME, SENT_TO_DISK,
        };
        const OF_MACHINE: [&str; 12] = [
            ACTION_FAILED,
            ACTION_SUCCEEDED,
            AGENT_STARTED,
            ASKED_FOR_ADDRESS,
            ASKED_METADATA,
            FETCHED_INITRD,
            FETCHED_KERNEL,
            FETCHED_LOADER,
            FETCHED_SCRIPT,
            GOT_ADDRESS,
            PHONED_HOME,
            SENT_TO_DISK,
        ];
        self.kind == "Hardware" && OF_MACHINE.contains(&self.reason.as_str())
    }

    /// Reads a core/v1 Event. Returns `None` for an Event without time or message.
    pub fn from_event(event: &Value) -> Option<EventRecord> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
        let at = time(&event["eventTime"])
            .or_else(|| time(&event["lastTimestamp"]))
            .or_else(|| time(&event["firstTimestamp"]))
            .or_else(|| time(&event["metadata"]["creationTimestamp"]))?;
        let about = &event["involvedObject"];
        let version = event["metadata"]["resourceVersion"].as_str();
        let mut message = event["message"].as_str().filter(|it| !it.is_empty())?.to_owned();
        if let Some(count) = event["count"].as_u64().filter(|count| *count > 1) {
            let _ = write!(message, " ({count} times)");
        }
        Some(EventRecord {
            at,
            revision: version.and_then(|version| version.parse().ok()).unwrap_or_default(),
            kind: text(&about["kind"]),
            name: text(&about["name"]),
            reason: text(&event["reason"]),
            message,
            warning: event["type"] == "Warning",
        })
    }

    /// Converts the event to a line. If the event is about another object than the Hardware, the
    /// sentence begins with kind and name of that object.
    fn line(&self, origin: Timestamp) -> Line {
        let message = plain(&self.message);
        let sentence = match self.kind.as_str() {
            "Hardware" => message,
            kind => format!("{} {}: {message}", kind.to_lowercase(), self.name),
        };
        let offset = i64::try_from(self.at.duration_since(origin).as_millis()).unwrap_or(i64::MAX);
        Line {
            offset_millis: offset,
            at: self.at,
            reason: self.reason.clone(),
            sentence,
            warning: self.warning,
            kind: self.kind.clone(),
            name: self.name.clone(),
            revision: self.revision,
        }
    }
}

/// Returns the history of the latest boot among `events`, in any order.
///
/// The history begins at the last power-on that a BMC confirmed, with the steps that prepared the
/// power-on. Without such a power-on, the history begins after the last half hour of silence.
pub fn history(mut events: Vec<EventRecord>) -> Vec<Line> {
    events.sort_by_key(|event| (event.at, event.revision));
    let (from, origin) = begin(&events);
    let Some(origin) = origin else { return Vec::new() };
    events[from..].iter().map(|event| event.line(origin)).collect()
}

/// Returns the index of the latest boot's first event in sorted `events`, and the time of offset 0.
fn begin(events: &[EventRecord]) -> (usize, Option<Timestamp>) {
    if let Some(on) = events.iter().rposition(|event| event.reason == reason::POWERED_ON) {
        let origin = events[on].at;
        let leads = |event: &&EventRecord| {
            origin.duration_since(event.at) <= PREPARATION && !has_booted(&event.reason)
        };
        let steps = events[..on].iter().rev().take_while(leads).count();
        return (on - steps, Some(origin));
    }
    let pause = |pair: &[EventRecord]| pair[1].at.duration_since(pair[0].at) > SILENCE;
    let from = events.windows(2).rposition(pause).map_or(0, |at| at + 1);
    (from, events.get(from).map(|event| event.at))
}

/// Returns true for the reason of an event of a running machine. Such an event before a power-on
/// belongs to the previous boot.
fn has_booted(of: &str) -> bool {
    matches!(
        of,
        reason::POWERED_ON
            | reason::ASKED_FOR_ADDRESS
            | reason::GOT_ADDRESS
            | reason::FETCHED_LOADER
            | reason::FETCHED_SCRIPT
            | reason::FETCHED_KERNEL
            | reason::SENT_TO_DISK
            | reason::AGENT_STARTED
            | reason::ACTION_STARTED
            | reason::ACTION_SUCCEEDED
            | reason::ACTION_FAILED
            | reason::ASKED_METADATA
            | reason::PHONED_HOME
    )
}

#[cfg(test)]
mod tests;
