//! Decision about the next steps of a Workflow, as a pure function.

use std::time::Duration;

use api::document::{self, Document};
use api::state::attempt;
use api::state::report::{running, time_out};
use api::state::workflow::Event;
use api::tinkerbell::{Condition, State, WAITING, Workflow, WorkflowStatus};
use jiff::Timestamp;

use super::observe::Observed;
use super::{Timeouts, boot, installer, request, rescue, retry};

/// Wait between two reads of a Template or Hardware that does not exist yet.
const MISSING_WAIT: Duration = Duration::from_secs(2);

/// Interval between two checks of the other Workflow.
const QUEUE_WAIT: Duration = Duration::from_secs(2);

/// Step that changes one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Writes the status of the Workflow.
    Status(Box<WorkflowStatus>),
    /// Allows or forbids network boot on every interface of the Hardware.
    AllowNetboot(bool),
    /// Creates a boot Job.
    CreateJob {
        /// Name of the Job.
        name: String,
        /// BMC actions in the order in which they run.
        actions: Vec<api::bmc::Action>,
    },
    /// Deletes a Job by name that an earlier Workflow of the same name left.
    DeleteJob(String),
    /// Records an event for operators.
    Tell {
        /// Machine-readable reason of the Event.
        reason: &'static str,
        /// Message of the event as a sentence.
        message: String,
        /// True for an Event of type `Warning`.
        warning: bool,
    },
}

/// Steps to carry out, and the time of the next run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// Steps in the order in which they run.
    pub steps: Vec<Step>,
    /// Wait until the next run; `None`: run on a signal only.
    pub requeue: Option<Duration>,
}

impl Decision {
    /// Creates a decision without steps; the next run needs a signal.
    pub fn rest() -> Self {
        Self::default()
    }

    /// Creates a decision without steps; the next run is after `requeue`.
    pub fn later(requeue: Duration) -> Self {
        Self { steps: Vec::new(), requeue: Some(requeue) }
    }
}

/// Decides the next steps of a Workflow. `id` returns a new ID at each call.
pub fn decide(
    observed: &Observed,
    timeouts: Timeouts,
    now: Timestamp,
    id: &mut dyn FnMut() -> String,
) -> Decision {
    let workflow = &observed.workflow;
    if workflow.metadata.deletion_timestamp.is_some() {
        return Decision::rest();
    }
    if let Some(decision) = request::decide(observed, now) {
        return decision;
    }
    if workflow.spec.disabled == Some(true) {
        return Decision::rest();
    }
    if workflow.status.state.ended() {
        return retry::after_the_end(observed, now);
    }
    if let Some(decision) = request::pause(observed, now) {
        return decision;
    }
    if let Some(decision) = queue(observed, now) {
        return decision;
    }
    match workflow.status.state {
        State::New => render(observed, now, id),
        State::Preparing => boot::prepare(observed, now),
        State::Pending | State::Running => watch(observed, timeouts, now),
        State::Post => boot::finish(observed, now),
        State::Success | State::Failed | State::Timeout => Decision::rest(),
    }
}

/// Returns the steps while another Workflow uses the machine; `None` if this Workflow is first.
fn queue(observed: &Observed, now: Timestamp) -> Option<Decision> {
    let status = &observed.workflow.status;
    if let Some(ahead) = &observed.ahead {
        let message = format!("queued behind {ahead}");
        let after = with_condition(status, WAITING, true, "Queued", &message, now);
        let news = after != *status;
        let steps = news.then(|| Step::Status(Box::new(after))).into_iter().collect();
        return Some(Decision { steps, requeue: Some(QUEUE_WAIT) });
    }
    if status.conditions.iter().any(|it| it.kind == WAITING) {
        let mut status = status.clone();
        status.conditions.retain(|it| it.kind != WAITING);
        return Some(Decision { steps: vec![Step::Status(Box::new(status))], requeue: None });
    }
    None
}

/// Returns the steps for a state change by `event`: new status and an Event with `message`. Returns
/// no steps if the event does not change the state.
pub fn moved(
    workflow: &Workflow,
    event: Event,
    reason: &'static str,
    message: String,
    now: Timestamp,
) -> Vec<Step> {
    let Some(status) = attempt::end(&workflow.status, event, reason, &message, now) else {
        return Vec::new();
    };
    let warning = matches!(status.state, State::Failed | State::Timeout);
    vec![Step::Status(Box::new(status)), Step::Tell { reason, message, warning }]
}

/// Returns `status` with a condition set. Its time changes only if another field changes.
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
        Ok((document, unknown)) => {
            let boots = workflow.spec.boot_options.toggle_allow_netboot
                || workflow.spec.boot_options.boot_mode.is_some();
            let event = if boots { Event::RenderedForBoot } else { Event::RenderedForAgent };
            let kind = "TemplateRenderedSuccess";
            let message = "template rendered successfully";
            let mut status = with_condition(&workflow.status, kind, true, "Complete", message, now);
            status.global_timeout = document.global_timeout.max(0);
            attempt::RENDERED.clone_into(&mut status.template_rendering);
            status.tasks = attempt::carry_over(&status.tasks, document.into_tasks(&mut *id));
            status.agent_id =
                status.tasks.first().map_or_else(String::new, |it| it.agent_id.clone());
            let mut workflow = workflow.clone();
            workflow.status = status;
            let actions: usize = workflow.status.tasks.iter().map(|it| it.actions.len()).sum();
            let message = format!("template rendered: {actions} action(s)");
            let mut steps = moved(&workflow, event, "Rendered", message, now);
            if !unknown.is_empty() {
                let message = format!("the template has unknown keys: {}", unknown.join("; "));
                steps.push(Step::Tell { reason: "UnknownKeys", message, warning: true });
            }
            Decision { steps, requeue: None }
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
            // The order of creation is free, so a Template or Hardware may appear later.
            Decision { steps, requeue: Some(MISSING_WAIT) }
        }
    }
}

fn rendered(observed: &Observed) -> Result<(Document, Vec<String>), String> {
    let spec = &observed.workflow.spec;
    let from = observed
        .template
        .as_ref()
        .ok_or_else(|| format!("template {:?} does not exist", spec.template_ref))?;
    if observed.hardware.is_none() && !spec.hardware_ref.is_empty() {
        return Err(format!("hardware {:?} does not exist", spec.hardware_ref));
    }
    let text = from.spec.data.as_deref().unwrap_or_default();
    let mut data = document::data(&spec.hardware_map, &observed.hardware_json);
    data["references"] = observed.referred.objects.clone().into();
    let text = template::render(text, &data)
        .map_err(|error| observed.referred.explained(error.to_string()))?;
    let read = document::parse_with_warnings(&text);
    let (mut document, unknown) = read.map_err(|error| error.to_string())?;
    installer::complete(&mut document, observed.hardware.as_ref())?;
    Ok((document, unknown))
}

fn watch(observed: &Observed, timeouts: Timeouts, now: Timestamp) -> Decision {
    if let Some(decision) = action_clock(observed, now) {
        return decision;
    }
    let workflow = &observed.workflow;
    if observed.left.whole.is_some_and(|left| left.is_zero()) {
        let message = format!("the workflow timed out after {} s", workflow.status.global_timeout);
        let steps = moved(workflow, Event::TimeRanOut, "Timeout", message, now);
        return Decision { steps, requeue: None };
    }
    let decision = rescue::decide(observed, timeouts, now);
    let left = [decision.requeue, observed.left.whole, observed.left.action];
    Decision { requeue: left.into_iter().flatten().min(), ..decision }
}

/// Ends an action whose time is up by the box's clock; `None` if no time is up. The agent has the
/// same limit and has not reported, so it has stopped or does not work correctly.
pub fn action_clock(observed: &Observed, now: Timestamp) -> Option<Decision> {
    observed.left.action.filter(|left| left.is_zero())?;
    let status = &observed.workflow.status;
    let at = running(status)?;
    let action = &status.tasks[at.0].actions[at.1];
    let last_message = match observed.life.heard {
        Some(heard) => format!("last seen {} s ago", observed.moments.since(heard).as_secs()),
        None => "not seen since the box started".to_owned(),
    };
    let agent = &status.tasks[at.0].agent_id;
    let message = format!("timed out after {} s; agent {agent} was {last_message}", action.timeout);
    let after = time_out(status, &message, now)?;
    let tell = Step::Tell { reason: "ActionTimedOut", message, warning: true };
    Some(Decision { steps: vec![Step::Status(Box::new(after)), tell], requeue: None })
}
