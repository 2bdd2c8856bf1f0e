//! Requests of users for a workflow: cancel, retry, pause and resume.
//!
//! Cancel and retry are annotations, which every client preserves. The status stores the value of
//! the last executed request, in the same write as its effect. Therefore a request is never
//! executed twice, even after a restart.

use api::state::attempt;
use api::state::workflow::Event;
use api::tinkerbell::{
    CANCEL_REQUEST, Condition, RETRY_FROM, RETRY_REQUEST, RetryFrom, State, Workflow,
    WorkflowStatus,
};
use jiff::Timestamp;

use super::decide::{Decision, Step, with_condition};
use super::observe::Observed;
use super::{deadlines, retry};

/// Condition of a paused workflow, which starts no new action.
const PAUSED: &str = "Paused";
/// Condition of a workflow that a user cancelled.
pub const CANCELLED: &str = "Cancelled";

/// Returns the steps for a new cancel or retry request; `None` without a new request.
pub fn decide(observed: &Observed, now: Timestamp) -> Option<Decision> {
    let workflow = &observed.workflow;
    let status = &workflow.status;
    if let Some(request) = asked(workflow, CANCEL_REQUEST, &status.requests.cancel) {
        return Some(cancel(workflow, request, now));
    }
    let request = asked(workflow, RETRY_REQUEST, &status.requests.retry)?;
    let refused = match status.state {
        _ if workflow.spec.disabled == Some(true) => {
            "not retried: the workflow is disabled; enable it, then request the retry again"
        }
        State::Failed | State::Timeout => "",
        _ => "nothing to retry: only a workflow that failed or timed out can be retried",
    };
    if !refused.is_empty() {
        let mut status = status.clone();
        request.clone_into(&mut status.requests.retry);
        return Some(answered(status, "NothingToRetry", refused));
    }
    if let Some(decision) = super::boot::tidy(observed, now) {
        return Some(decision);
    }
    let from = workflow.metadata.annotations.get(RETRY_FROM);
    let from = from.and_then(|text| RetryFrom::parse(text));
    let wanted = workflow.spec.retry.as_ref().map_or(RetryFrom::Failed, |retry| retry.from);
    let mut asked_of = observed.clone();
    request.clone_into(&mut asked_of.workflow.status.requests.retry);
    Some(retry::begin(&asked_of, from.unwrap_or(wanted), "on request", now))
}

/// Returns the value of a new request in `annotation`; `answered` is the last executed value.
fn asked<'a>(workflow: &'a Workflow, annotation: &str, answered: &str) -> Option<&'a str> {
    let value = workflow.metadata.annotations.get(annotation)?.as_str();
    (!value.is_empty() && value != answered).then_some(value)
}

fn answered(status: WorkflowStatus, reason: &'static str, message: &str) -> Decision {
    let tell = Step::Tell { reason, message: message.to_owned(), warning: true };
    Decision { steps: vec![Step::Status(Box::new(status)), tell], requeue: None }
}

fn cancel(workflow: &Workflow, request: &str, now: Timestamp) -> Decision {
    let mut status = workflow.status.clone();
    request.clone_into(&mut status.requests.cancel);
    let message = "canceled on request";
    match attempt::end(&status, Event::Cancelled, CANCELLED, message, now) {
        Some(status) => {
            let status = with_condition(&status, CANCELLED, true, "Requested", message, now);
            answered(status, CANCELLED, message)
        }
        None => answered(status, "NothingToCancel", "nothing to cancel: all actions are complete"),
    }
}

/// Returns the steps at the start, during and at the end of a pause; `None` without a pause.
/// Running work continues: an action within its limits, a boot Job, and the steps after the last
/// action.
pub fn pause(observed: &Observed, now: Timestamp) -> Option<Decision> {
    let workflow = &observed.workflow;
    let status = &workflow.status;
    let since = status.conditions.iter().find(|it| it.kind == PAUSED);
    let wanted = workflow.spec.paused == Some(true) && status.state != State::Post;
    match (wanted, since) {
        (false, None) => None,
        (true, Some(_)) => Some(match super::decide::action_clock(observed, now) {
            Some(decision) => decision,
            None => Decision { steps: Vec::new(), requeue: observed.left.action },
        }),
        (true, None) => {
            let message = "no new action starts until the workflow is resumed";
            let status = with_condition(status, PAUSED, true, "Requested", message, now);
            Some(with_event(status, "Paused", message))
        }
        (false, Some(condition)) => {
            let status = resumed(status, condition, now);
            Some(with_event(status, "Resumed", "the workflow continues"))
        }
    }
}

fn resumed(status: &WorkflowStatus, pause: &Condition, now: Timestamp) -> WorkflowStatus {
    let mut status = status.clone();
    let pause = now.duration_since(pause.time.unwrap_or(now));
    status.global_execution_stop = deadlines::later(status.global_execution_stop, pause);
    status.conditions.retain(|it| it.kind != PAUSED);
    status
}

fn with_event(status: WorkflowStatus, reason: &'static str, message: &str) -> Decision {
    let tell = Step::Tell { reason, message: message.to_owned(), warning: false };
    Decision { steps: vec![Step::Status(Box::new(status)), tell], requeue: None }
}
