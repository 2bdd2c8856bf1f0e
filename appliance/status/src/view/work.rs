//! Workflow in the status view.

mod details;

use api::tinkerbell::{ActionState, ActionStatus, State, Workflow};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Text, Trouble};
use crate::words;

pub use details::{WorkAction, WorkDetails};

/// Value of the status field `templateRendering` if the template cannot be rendered.
const RENDERING_FAILED: &str = "failed";
/// Code of the trouble of a workflow whose template cannot be rendered.
pub const NOT_RENDERED: &str = "NotRendered";
/// Type of the condition whose message is the reason of a failed rendering.
const RENDERED: &str = "TemplateRenderedSuccess";

/// Annotation of a Workflow with the failure that a person dismissed, as [`dismissal`] formats it.
pub const DISMISSED: &str = "tinbox.dev/dismissed";

/// A workflow with its progress.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Work {
    /// Name of the workflow.
    pub name: Text,
    /// Name of the machine.
    pub machine: Text,
    /// Name of the template.
    pub template: Text,
    /// State of the workflow.
    pub state: State,
    /// True if a person paused or disabled the workflow.
    pub held: bool,
    /// True if a person canceled the workflow.
    pub canceled: bool,
    /// True if a person dismissed the failure of the latest attempt.
    pub dismissed: bool,
    /// Place in the queue of the machine, as a phrase; empty if the workflow is first.
    pub queued: Text,
    /// Name of the running action, or of the action that failed or timed out; may be empty.
    pub step: Text,
    /// Number of succeeded actions.
    pub done: u32,
    /// Number of actions in total.
    pub actions: u32,
    /// Number of the current attempt, counted from 1.
    pub attempt: u32,
    /// Maximum number of attempts of the workflow.
    pub attempts_max: u32,
    /// Time at which the state began, if known.
    pub since: Option<Timestamp>,
    /// Failure of the workflow, if any.
    pub trouble: Option<Trouble>,
}

impl Work {
    /// Summarizes a Workflow for the view.
    pub fn of(workflow: &Workflow) -> Self {
        let (spec, status) = (&workflow.spec, &workflow.status);
        let actions = || status.tasks.iter().flat_map(|task| &task.actions);
        let count = |state: Option<ActionState>| {
            let those = actions().filter(|it| state.is_none_or(|state| it.state == state));
            u32::try_from(those.count()).unwrap_or(u32::MAX)
        };
        let at = actions().find(|it| {
            use ActionState::{Failed, Running, Timeout};
            matches!(it.state, Running | Failed | Timeout)
        });
        let number = |it: i64| u32::try_from(it).unwrap_or(0).max(1);
        let retries = spec.retry.as_ref().map_or(1, |retry| retry.attempts);
        let mut work = Self {
            name: workflow.metadata.name.as_str().into(),
            machine: spec.hardware_ref.as_str().into(),
            template: spec.template_ref.as_str().into(),
            state: status.state,
            held: spec.paused == Some(true) || spec.disabled == Some(true),
            canceled: words::is_canceled(status),
            dismissed: workflow.metadata.annotations.get(DISMISSED) == Some(&dismissal(workflow)),
            queued: status.queued().unwrap_or_default().into(),
            step: at.map(|it| it.name.as_str().into()).unwrap_or_default(),
            done: count(Some(ActionState::Success)),
            actions: count(None),
            attempt: number(status.attempts),
            attempts_max: number(retries),
            since: since(workflow, at),
            trouble: None,
        };
        work.trouble = trouble(workflow, at);
        work
    }

    /// Returns true if the template cannot be rendered, so that a person must correct it.
    pub fn cannot_begin(&self) -> bool {
        self.state == State::New && self.trouble.is_some()
    }
}

/// Returns the value that identifies the latest failure of a workflow: the number of the attempt
/// and the time of its end. A later failure has another value.
pub fn dismissal(workflow: &Workflow) -> String {
    let status = &workflow.status;
    let ended = status.ended.as_ref().map(|ended| ended.time.to_string()).unwrap_or_default();
    format!("{}/{ended}", status.attempts)
}

fn since(workflow: &Workflow, at: Option<&ActionStatus>) -> Option<Timestamp> {
    let status = &workflow.status;
    match status.state {
        State::Success | State::Failed | State::Timeout => {
            let stopped = at.and_then(|it| it.execution_stop);
            status.ended.as_ref().map(|ended| ended.time).or(stopped)
        }
        State::Running => at.and_then(|it| it.execution_start),
        _ => status.attempt_start.or(workflow.metadata.creation_timestamp),
    }
}

/// Returns the failure of the workflow; `None` if it has not failed.
fn trouble(workflow: &Workflow, at: Option<&ActionStatus>) -> Option<Trouble> {
    let (name, status) = (&workflow.metadata.name, &workflow.status);
    if status.state == State::New && status.template_rendering == RENDERING_FAILED {
        let why = status.conditions.iter().find(|it| it.kind == RENDERED);
        return Some(Trouble {
            what: format!("Template {} cannot be rendered", workflow.spec.template_ref).into(),
            on: workflow.spec.hardware_ref.as_str().into(),
            why: phrase(why.map_or("", |it| &it.message)).into(),
            now: "Correct the Template; the box retries automatically".into(),
            code: NOT_RENDERED.into(),
            ..Trouble::default()
        });
    }
    if let (State::Preparing | State::Pending, Some(error)) = (status.state, status.bmc_error()) {
        return Some(Trouble {
            what: "The boot is delayed".into(),
            on: workflow.spec.hardware_ref.as_str().into(),
            why: phrase(error).into(),
            now: "Check the BMC; the box retries automatically".into(),
            code: "BmcError".into(),
            ..Trouble::default()
        });
    }
    if !matches!(status.state, State::Failed | State::Timeout) {
        return None;
    }
    let ended = status.ended.clone().unwrap_or_default();
    let failed = at.filter(|it| it.state != ActionState::Running);
    let what = match failed {
        Some(action) if action.state == ActionState::Timeout => {
            format!("{} timed out", action.name)
        }
        Some(action) => format!("{} failed", action.name),
        None if ended.reason == "BootFailed" => "The boot failed".to_owned(),
        None if ended.reason == "Cancelled" => format!("Workflow {name} was canceled"),
        None if status.state == State::Timeout => format!("Workflow {name} timed out"),
        None => format!("Workflow {name} failed"),
    };
    let message = failed.map_or("", |it| it.message.trim());
    let why = if message.is_empty() { ended.message.as_str() } else { message };
    Some(Trouble {
        what: what.into(),
        on: workflow.spec.hardware_ref.as_str().into(),
        why: phrase(why).into(),
        now: "See its history, fix the cause, then retry it".into(),
        code: ended.reason.into(),
        ..Trouble::default()
    })
}

/// Returns the first line of a message without its full stop, for the end of a sentence.
fn phrase(message: &str) -> &str {
    message.trim().lines().next().unwrap_or_default().trim_end_matches('.')
}

#[cfg(test)]
mod tests;
