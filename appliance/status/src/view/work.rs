//! A workflow, as every face shows it.

use api::tinkerbell::{ActionState, ActionStatus, State, Workflow};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Text, Trouble};

/// What the controller writes where a template makes no workflow.
const NOT_RENDERED: &str = "failed";
/// The condition that says why.
const RENDERED: &str = "TemplateRenderedSuccess";

/// What is to be done to a machine, and how far that is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Work {
    /// Its name.
    pub name: Text,
    /// The machine's.
    pub machine: Text,
    /// The template's.
    pub template: Text,
    /// Its state.
    pub state: State,
    /// A person holds it.
    pub held: bool,
    /// The action that runs, or that ended it; may be empty.
    pub step: Text,
    /// Actions that succeeded.
    pub done: u32,
    /// Actions in all.
    pub actions: u32,
    /// Which attempt this is.
    pub attempt: u32,
    /// How many there are at most.
    pub attempts_max: u32,
    /// Since when it is in its state, as far as it says so.
    pub since: Option<Timestamp>,
    /// What went wrong.
    pub trouble: Option<Trouble>,
}

impl Work {
    /// What people are told of a Workflow.
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

    /// Its template makes no workflow of it: nothing moves until somebody mends that.
    pub fn cannot_begin(&self) -> bool {
        self.state == State::New && self.trouble.is_some()
    }
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

/// Why it ended badly, in the four parts; `None` while it goes well.
fn trouble(workflow: &Workflow, at: Option<&ActionStatus>) -> Option<Trouble> {
    let (name, status) = (&workflow.metadata.name, &workflow.status);
    if status.state == State::New && status.template_rendering == NOT_RENDERED {
        let why = status.conditions.iter().find(|it| it.kind == RENDERED);
        return Some(Trouble {
            what: format!("Template {} makes no workflow", workflow.spec.template_ref).into(),
            on: workflow.spec.hardware_ref.as_str().into(),
            why: phrase(why.map_or("", |it| &it.message)).into(),
            now: "Mend the Template; the box looks again by itself".into(),
            code: "NotRendered".into(),
        });
    }
    if !matches!(status.state, State::Failed | State::Timeout) {
        return None;
    }
    let ended = status.ended.clone().unwrap_or_default();
    let failed = at.filter(|it| it.state != ActionState::Running);
    let what = match failed {
        Some(action) if action.state == ActionState::Timeout => {
            format!("{} took too long", action.name)
        }
        Some(action) => format!("{} failed", action.name),
        None if ended.reason == "BootFailed" => "The boot failed".to_owned(),
        None if ended.reason == "Cancelled" => format!("Workflow {name} was cancelled"),
        None if status.state == State::Timeout => format!("Workflow {name} took too long"),
        None => format!("Workflow {name} failed"),
    };
    let said = failed.map_or("", |it| it.message.trim());
    let why = if said.is_empty() { ended.message.as_str() } else { said };
    Some(Trouble {
        what: what.into(),
        on: workflow.spec.hardware_ref.as_str().into(),
        why: phrase(why).into(),
        now: format!("See its story, mend it, then: tinbox workflow retry {name}").into(),
        code: ended.reason.into(),
    })
}

/// What was said as the end of a sentence: its first line, without the full stop.
fn phrase(said: &str) -> &str {
    said.trim().lines().next().unwrap_or_default().trim_end_matches('.')
}

#[cfg(test)]
mod tests;
