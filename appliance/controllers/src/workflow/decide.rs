//! What is next for a Workflow. Pure.

use std::time::Duration;

use api::state::workflow::{Event, next};
use api::template;
use api::tinkerbell::{Condition, State, Workflow, WorkflowStatus};
use jiff::Timestamp;

use super::observe::Observed;
use super::{Patience, boot, rescue};

/// The wait for a Template or Hardware that does not exist yet.
const MISSING_WAIT: Duration = Duration::from_secs(2);

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Write the status.
    Status(Box<WorkflowStatus>),
    /// Permit or forbid network boot on every interface of the Hardware.
    AllowNetboot(bool),
    /// Make a boot Job.
    CreateJob {
        /// Name.
        name: String,
        /// Actions, in order.
        actions: Vec<api::bmc::Action>,
    },
    /// Remove a Job that an earlier Workflow of this name left.
    DeleteJob(String),
    /// Tell people.
    Tell {
        /// Stable code.
        reason: &'static str,
        /// Sentence.
        message: String,
        /// Something to look at.
        warning: bool,
    },
}

/// The steps, and when to look again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// Steps, in order.
    pub steps: Vec<Step>,
    /// When to look again without a signal.
    pub again: Option<Duration>,
}

impl Decision {
    /// Nothing to do until a signal.
    pub fn rest() -> Self {
        Self::default()
    }

    /// Nothing to do until then.
    pub fn later(again: Duration) -> Self {
        Self { steps: Vec::new(), again: Some(again) }
    }
}

/// What is next for a Workflow; `id` gives a fresh identifier each time.
pub fn decide(
    observed: &Observed,
    patience: Patience,
    now: Timestamp,
    id: &mut dyn FnMut() -> String,
) -> Decision {
    let workflow = &observed.workflow;
    if workflow.metadata.deletion_timestamp.is_some() || workflow.spec.disabled == Some(true) {
        return Decision::rest();
    }
    match workflow.status.state {
        State::New => render(observed, now, id),
        State::Preparing => boot::prepare(observed, now),
        State::Pending | State::Running => watch(observed, patience, now),
        State::Post => boot::finish(observed, now),
        State::Success | State::Failed | State::Timeout => boot::tidy(observed, now),
    }
}

/// The status moved by `event`, with a sentence about it; nothing when the event changes nothing.
pub fn moved(
    workflow: &Workflow,
    event: Event,
    reason: &'static str,
    message: String,
) -> Vec<Step> {
    let Some(state) = next(workflow.status.state, event) else { return Vec::new() };
    let status = WorkflowStatus { state, ..workflow.status.clone() };
    let warning = matches!(state, State::Failed | State::Timeout);
    vec![Step::Status(Box::new(status)), Step::Tell { reason, message, warning }]
}

/// `status` with a condition set; its time moves only when it changes.
pub fn with_condition(
    status: &WorkflowStatus,
    kind: &str,
    good: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> WorkflowStatus {
    let mut status = status.clone();
    let condition = Condition {
        kind: kind.to_owned(),
        status: if good { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        time: Some(now),
    };
    match status.conditions.iter_mut().find(|it| it.kind == kind) {
        Some(old) if Condition { time: condition.time, ..old.clone() } == condition => {}
        Some(old) => *old = condition,
        None => status.conditions.push(condition),
    }
    status
}

fn render(observed: &Observed, now: Timestamp, id: &mut dyn FnMut() -> String) -> Decision {
    let workflow = &observed.workflow;
    match rendered(observed) {
        Ok(document) => {
            let boots = workflow.spec.boot_options.toggle_allow_netboot
                || workflow.spec.boot_options.boot_mode.is_some();
            let event = if boots { Event::RenderedForBoot } else { Event::RenderedForAgent };
            let kind = "TemplateRenderedSuccess";
            let message = "template rendered successfully";
            let mut status = with_condition(&workflow.status, kind, true, "Complete", message, now);
            status.global_timeout = document.global_timeout.max(0);
            status.template_rendering = "successful".to_owned();
            status.tasks = document.into_tasks(&mut *id);
            status.agent_id =
                status.tasks.first().map_or_else(String::new, |it| it.agent_id.clone());
            let mut workflow = workflow.clone();
            workflow.status = status;
            let actions: usize = workflow.status.tasks.iter().map(|it| it.actions.len()).sum();
            let message = format!("template rendered: {actions} action(s)");
            Decision { steps: moved(&workflow, event, "Rendered", message), again: None }
        }
        Err(why) => {
            let kind = "TemplateRenderedSuccess";
            let mut status = with_condition(&workflow.status, kind, false, "Error", &why, now);
            status.template_rendering = "failed".to_owned();
            let mut steps = Vec::new();
            if status != workflow.status {
                steps.push(Step::Status(Box::new(status)));
                steps.push(Step::Tell { reason: "NotRendered", message: why, warning: true });
            }
            // A Template or Hardware that appears later is found: the order of creation is free.
            Decision { steps, again: Some(MISSING_WAIT) }
        }
    }
}

fn rendered(observed: &Observed) -> Result<template::Document, String> {
    let spec = &observed.workflow.spec;
    let template = observed
        .template
        .as_ref()
        .ok_or_else(|| format!("there is no template {:?}", spec.template_ref))?;
    if observed.hardware.is_none() && !spec.hardware_ref.is_empty() {
        return Err(format!("there is no hardware {:?}", spec.hardware_ref));
    }
    let text = template.spec.data.as_deref().unwrap_or_default();
    let data = template::data(&spec.hardware_map, &observed.hardware_json);
    let text = template::render(text, &data).map_err(|error| error.to_string())?;
    template::parse(&text).map_err(|error| error.to_string())
}

fn watch(observed: &Observed, patience: Patience, now: Timestamp) -> Decision {
    let workflow = &observed.workflow;
    let status = &workflow.status;
    if let Some(stop) = status.global_execution_stop {
        if now >= stop {
            let message = format!("not done within its {} s", status.global_timeout);
            let steps = moved(workflow, Event::TimeRanOut, "Timeout", message);
            return Decision { steps, again: None };
        }
        let left = Duration::try_from(stop.duration_since(now)).unwrap_or_default();
        let decision = rescue::decide(observed, patience, now);
        let again = decision.again.map_or(left, |again| again.min(left));
        return Decision { again: Some(again), ..decision };
    }
    rescue::decide(observed, patience, now)
}
