//! Disk choice for a whole workflow: all actions with the same hint use the same disk. A hint such
//! as `model=Samsung` may match another disk after a restart, and would split an installation.

use std::fmt;

use super::report::running;
use crate::tinkerbell::{ChosenDisk, WorkflowStatus};

/// Maximum number of disk choices that a workflow records.
pub const CHOICES_MAX: usize = 64;

/// Reason why a disk must not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskChoiceError {
    /// The action of the request is not running.
    #[error("cannot choose a disk: action {action_id} of agent {agent_id} is not running")]
    Action {
        /// Action of the request.
        action_id: String,
        /// Agent of the request.
        agent_id: String,
    },
    /// The hint chose another disk before.
    #[error(
        "the hint {hint:?} chose {before} earlier in this workflow, but matches {now} now: attach \
         that disk again, or create a new Workflow to use the other"
    )]
    Other {
        /// Hint of the request.
        hint: String,
        /// Disk that the hint chose before, as text for a person.
        before: String,
        /// Disk that matches the hint now, as text for a person.
        now: String,
    },
    /// The workflow has recorded [`CHOICES_MAX`] choices already.
    #[error("the workflow has more than {CHOICES_MAX} disk hints: use fewer hints")]
    Full,
}

/// Records the disk choice of the action with the ID `action_id` in `status`. Returns `true` when
/// the status changed.
///
/// # Errors
/// The action is not running, the hint chose another disk before, or there are too many choices.
pub fn choose(
    status: &mut WorkflowStatus,
    action_id: &str,
    choice: ChosenDisk,
) -> Result<bool, DiskChoiceError> {
    let runs = running(status).filter(|_| status.state.serves()).is_some_and(|(task, action)| {
        let task = &status.tasks[task];
        task.agent_id == choice.agent_id && task.actions[action].id == action_id
    });
    if !runs {
        let (action_id, agent_id) = (action_id.to_owned(), choice.agent_id);
        return Err(DiskChoiceError::Action { action_id, agent_id });
    }
    let is_of_hint = |it: &&ChosenDisk| it.agent_id == choice.agent_id && it.hint == choice.hint;
    match status.chosen_disks.iter().find(is_of_hint) {
        Some(before) if is_same(before, &choice) => Ok(false),
        Some(before) => {
            let (before, now) = (Words(before).to_string(), Words(&choice).to_string());
            Err(DiskChoiceError::Other { hint: choice.hint, before, now })
        }
        None if status.chosen_disks.len() >= CHOICES_MAX => Err(DiskChoiceError::Full),
        None => {
            status.chosen_disks.push(choice);
            Ok(true)
        }
    }
}

/// Returns true if both choices are the same disk. Disks are compared by World Wide Name, else by
/// serial number, else by model and size.
fn is_same(one: &ChosenDisk, other: &ChosenDisk) -> bool {
    let pairs = [(&one.wwn, &other.wwn), (&one.serial, &other.serial)];
    let known = pairs.into_iter().find(|(one, other)| !one.is_empty() && !other.is_empty());
    if let Some((one, other)) = known {
        return one.eq_ignore_ascii_case(other);
    }
    let is_nameless = pairs.iter().all(|(one, other)| one.is_empty() && other.is_empty());
    is_nameless && one.model == other.model && one.size == other.size
}

/// Formats model, size, and serial number or WWN of a disk, for a person.
struct Words<'a>(&'a ChosenDisk);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChosenDisk { wwn, serial, model, size, .. } = self.0;
        let size = stdx::bytes(u64::try_from(*size).unwrap_or(0));
        let model = if model.is_empty() { "a disk" } else { model };
        match (serial.as_str(), wwn.as_str()) {
            ("", "") => write!(f, "{model} of {size} without a serial number"),
            ("", wwn) => write!(f, "{model} of {size}, wwn {wwn}"),
            (serial, _) => write!(f, "{model} of {size}, serial number {serial}"),
        }
    }
}

#[cfg(test)]
mod tests;
