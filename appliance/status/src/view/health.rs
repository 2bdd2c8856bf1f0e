//! Health of the box in a word.

use super::problem::{Urgency, problems};
use super::{Nic, StatusView};
use crate::words::{Shape, Tone, Word};

/// Returns the most important state of the box as a word and a shape.
pub fn health(view: &StatusView) -> (Word, Shape) {
    let worst = problems(view).first().map(|problem| problem.urgency);
    let (text, tone, shape) = match worst {
        _ if view.starting().is_some() => ("starting", Tone::Busy, Shape::Triangle),
        _ if !view.safe_mode.is_empty() => ("safe mode", Tone::Bad, Shape::Cross),
        _ if view.claim.is_some() => ("unclaimed", Tone::Waiting, Shape::HalfDot),
        Some(Urgency::Box) => ("stopped", Tone::Bad, Shape::Cross),
        Some(Urgency::Machine) => ("needs you", Tone::Bad, Shape::Cross),
        _ if !view.nics.iter().any(Nic::armed) => ("not serving", Tone::Quiet, Shape::Ring),
        Some(Urgency::Notice) => ("serving", Tone::Waiting, Shape::HalfDot),
        None => ("serving", Tone::Good, Shape::Tick),
    };
    (Word { text, tone }, shape)
}
