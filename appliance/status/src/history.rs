//! A machine's Events in order, with their offsets, and the times between the milestones of a boot.

mod booting;
mod silence;
mod times;

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::story::{plain, reason};

pub use booting::booting;
pub use silence::{Silence, silence};
pub use times::{Span, times};

/// Silence after which a machine that nobody powered on is taken to begin anew.
const SILENCE: SignedDuration = SignedDuration::from_mins(30);
/// How long before a power-on the steps that led to it lie at most.
const PREPARATION: SignedDuration = SignedDuration::from_mins(2);

/// One Event, as far as a story needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// When.
    pub at: Timestamp,
    /// Store revision of the Event; orders what happened in the same microsecond.
    pub revision: u64,
    /// Kind of the object it is about.
    pub kind: String,
    /// Name of that object.
    pub name: String,
    /// Stable word.
    pub reason: String,
    /// Sentence.
    pub message: String,
    /// Somebody should look at it.
    pub warning: bool,
}

/// One line of a story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Time since the power-on, or since the first line; negative for what led to the power-on.
    pub offset_millis: i64,
    /// When.
    pub at: Timestamp,
    /// Stable word.
    pub reason: String,
    /// What happened.
    pub sentence: String,
    /// Somebody should look at it.
    pub warning: bool,
    /// Kind of the object it is about.
    #[serde(skip)]
    pub kind: String,
    /// Name of that object.
    #[serde(skip)]
    pub name: String,
    /// Store revision of the Event.
    #[serde(skip)]
    pub revision: u64,
}

/// How a story ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The installed system is up.
    Home,
    /// What was being done to the machine failed.
    Failed,
}

impl Line {
    /// Whether the story ends here: a workflow that fails because of an action says so on its
    /// Hardware, one whose machine cannot be booted or that takes too long says so itself.
    pub fn end(&self) -> Option<End> {
        match (self.kind.as_str(), self.reason.as_str()) {
            ("Hardware", reason::PHONED_HOME) => Some(End::Home),
            ("Hardware", reason::ACTION_FAILED) => Some(End::Failed),
            ("Workflow", "BootFailed" | "Timeout") => Some(End::Failed),
            _ => None,
        }
    }
}

impl Told {
    /// Read a core/v1 Event; `None` when it has no time or no sentence.
    pub fn from_event(event: &Value) -> Option<Told> {
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
        Some(Told {
            at,
            revision: version.and_then(|version| version.parse().ok()).unwrap_or_default(),
            kind: text(&about["kind"]),
            name: text(&about["name"]),
            reason: text(&event["reason"]),
            message,
            warning: event["type"] == "Warning",
        })
    }

    /// As a line of its machine's story: what is about another object says so.
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

/// The story of the latest boot among `events`, which may come in any order.
///
/// It begins at the last power-on that a BMC confirmed, with the steps that led to it; for a
/// machine without one, after the last half hour of silence.
pub fn timeline(mut events: Vec<Told>) -> Vec<Line> {
    events.sort_by_key(|told| (told.at, told.revision));
    let (from, origin) = begin(&events);
    let Some(origin) = origin else { return Vec::new() };
    events[from..].iter().map(|told| told.line(origin)).collect()
}

/// Where the latest boot begins in sorted `events`, and the time its offsets count from.
fn begin(events: &[Told]) -> (usize, Option<Timestamp>) {
    if let Some(on) = events.iter().rposition(|told| told.reason == reason::POWERED_ON) {
        let origin = events[on].at;
        let leads = |told: &&Told| {
            origin.duration_since(told.at) <= PREPARATION && !has_booted(&told.reason)
        };
        let steps = events[..on].iter().rev().take_while(leads).count();
        return (on - steps, Some(origin));
    }
    let pause = |pair: &[Told]| pair[1].at.duration_since(pair[0].at) > SILENCE;
    let from = events.windows(2).rposition(pause).map_or(0, |at| at + 1);
    (from, events.get(from).map(|told| told.at))
}

/// A machine that did this was running, so it belongs to the boot before.
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
