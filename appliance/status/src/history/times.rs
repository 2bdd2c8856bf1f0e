//! Durations between the milestones of a boot.

use super::Line;
use crate::boot_event::{Stage, ended_action, reason};

/// Time from one milestone to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Name of the milestone that ends the span.
    pub label: String,
    /// Milliseconds since the previous milestone.
    pub millis: u64,
    /// Milliseconds since the first milestone.
    pub total_millis: u64,
}

/// Returns the spans between the milestones in `lines`: power on, first request, address, boot
/// loader, kernel, agent, every ended action, disk boot, metadata request, phone-home.
///
/// Fewer than two milestones give an empty list.
pub fn times(lines: &[Line]) -> Vec<Span> {
    let mut marks: Vec<(String, i64)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(label) = milestone(lines, at) else { continue };
        // Only actions may come twice; firmware asks for addresses again and again.
        let known = marks.iter().any(|(mark, _)| *mark == label);
        if !known || line.reason.starts_with("Action") {
            marks.push((label, line.offset_millis));
        }
    }
    let Some((_, first)) = marks.first().cloned() else { return Vec::new() };
    let mut before = first;
    let spans = marks.iter().skip(1).map(|(label, offset)| {
        let millis = u64::try_from(offset - before).unwrap_or_default();
        before = *offset;
        let total_millis = u64::try_from(offset - first).unwrap_or_default();
        Span { label: label.clone(), millis, total_millis }
    });
    spans.collect()
}

fn milestone(lines: &[Line], at: usize) -> Option<String> {
    let line = &lines[at];
    let agent_ran = lines[..at].iter().any(|it| it.reason == reason::AGENT_STARTED);
    let system = line.sentence.ends_with(&format!("({})", Stage::System.word()));
    let label = match line.reason.as_str() {
        reason::POWERED_ON => "power on",
        reason::ASKED_FOR_ADDRESS if !system => "first request",
        reason::GOT_ADDRESS if !system && !agent_ran => "address",
        reason::FETCHED_LOADER if !agent_ran => "boot loader",
        reason::FETCHED_KERNEL => "agent's kernel",
        reason::AGENT_STARTED => "agent",
        reason::ACTION_SUCCEEDED | reason::ACTION_FAILED => {
            return ended_action(&line.sentence).map(|name| format!("action {name}"));
        }
        reason::SENT_TO_DISK => "disk boot",
        reason::GOT_ADDRESS if system => "installed system's address",
        reason::ASKED_METADATA if agent_ran => "first boot requests its metadata",
        reason::PHONED_HOME => "phoned home",
        _ => return None,
    };
    Some(label.to_owned())
}
