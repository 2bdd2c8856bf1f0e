//! Decision about a TinkerbellMachineTemplate.

use std::time::Duration;

use api::infrastructure::{BoxHardware, TinkerbellMachineTemplateStatus};
use jiff::Timestamp;

use super::observe::Observed;
use super::{box_hardware, former_spec};
use crate::conditions::{DecisionTime, Finding, READY, find};
use controllers::runtime::Requeue;

/// Interval at which changes of the Hardware, which send no signal, reach the status.
const RECHECK: Duration = Duration::from_secs(3 * 60);
/// Maximum length of the message about all boxes, in characters. The API permits 32,768.
const MESSAGE_CHARS_MAX: usize = 4096;

/// Step that writes the status or records an event.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Writes the status of the object that was read.
    Status(Box<TinkerbellMachineTemplateStatus>),
    /// Records an event about the object.
    Record {
        /// Reason of the event; its spelling never changes.
        reason: &'static str,
        /// Sentence for a person.
        message: String,
        /// True for an event of type `Warning`.
        warning: bool,
    },
}

/// Steps to carry out, and the time of the next run.
#[derive(Debug, PartialEq)]
pub struct Decision {
    /// Steps in the order in which they run.
    pub steps: Vec<Step>,
    /// Time of the next run.
    pub requeue: Requeue,
}

/// Returns the next steps for a TinkerbellMachineTemplate.
pub fn decide(observed: Observed, now: Timestamp) -> Decision {
    let metadata = &observed.template.metadata;
    if !observed.served || metadata.deletion_timestamp.is_some() {
        return Decision { steps: Vec::new(), requeue: Requeue::OnSignal };
    }
    // The end of a pause of the Cluster sends no signal for the template.
    let requeue = Requeue::After(RECHECK);
    if observed.is_paused() {
        return Decision { steps: Vec::new(), requeue };
    }
    let moment = DecisionTime { generation: metadata.generation, now };
    let Observed { template, hosts, machines, box_name, .. } = observed;
    let mut status = template.status.clone();
    box_hardware::put(&mut status, box_hardware::own(&template, hosts, &box_name));
    let of_machines = former_spec::finding(&template, &machines);
    // A template whose machines never differed has no news about them.
    let is_first = of_machines.is_true && find(&status.conditions, of_machines.kind).is_none();
    let mut events = Vec::new();
    for (finding, is_silent) in [(ready(&status), false), (of_machines, is_first)] {
        if finding.put(&mut status.conditions, moment) && !is_silent {
            let Finding { reason, message, is_true, .. } = finding;
            events.push(Step::Record { reason, message, warning: !is_true });
        }
    }
    let mut steps = Vec::new();
    if status != template.status {
        steps.push(Step::Status(Box::new(status)));
        steps.append(&mut events);
    }
    Decision { steps, requeue }
}

/// Returns the state of the condition `Ready`. The state depends only on fields of the status,
/// because all boxes must write the same condition.
fn ready(status: &TinkerbellMachineTemplateStatus) -> Finding {
    let matching = status.matching_hardware.unwrap_or_default();
    let free = status.free_hardware.unwrap_or_default();
    let (is_true, reason, message) = match (matching, free) {
        (0, _) => (false, "NoMatchingHardware", reasons(&status.boxes)),
        (_, 0) => (true, "HardwareInUse", format!("all matching Hardware ({matching}) is in use")),
        _ => {
            (true, "HardwareAvailable", format!("{free} of {matching} matching Hardware are free"))
        }
    };
    Finding { kind: READY, is_true, reason, message }
}

/// Returns the reasons of all boxes. A single box needs no name.
fn reasons(boxes: &[BoxHardware]) -> String {
    let text = match boxes {
        [one] => one.message.clone(),
        several => {
            let each: Vec<String> =
                several.iter().map(|it| format!("{}: {}", it.name, it.message)).collect();
            each.join("\n")
        }
    };
    match text.char_indices().nth(MESSAGE_CHARS_MAX - 1) {
        Some((end, _)) if text.chars().count() > MESSAGE_CHARS_MAX => format!("{}…", &text[..end]),
        _ => text,
    }
}
