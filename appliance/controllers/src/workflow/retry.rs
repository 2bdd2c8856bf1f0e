//! Further attempts of a workflow that failed or timed out.

use std::time::Duration;

use api::state::attempt;
use api::tinkerbell::{RetryFrom, State};
use jiff::Timestamp;

use super::boot;
use super::decide::{Decision, Step, with_condition};
use super::observe::Observed;
use super::request::CANCELLED;
use super::rescue;

/// Condition of a workflow that waits for its next attempt.
const RETRYING: &str = "Retrying";
/// Time for an agent to send a request after the start of another attempt, before its machine is
/// booted. Tinbox agents send a request every two seconds, upstream agents every five.
const HEARD_WITHIN: Duration = Duration::from_secs(15);

/// Returns the steps after the end of a workflow: the cleanup, then another attempt if due.
pub fn after_the_end(observed: &Observed, now: Timestamp) -> Decision {
    if let Some(decision) = boot::tidy(observed, now) {
        return decision;
    }
    let workflow = &observed.workflow;
    let status = &workflow.status;
    let failed = matches!(status.state, State::Failed | State::Timeout);
    let held = workflow.spec.paused == Some(true)
        || status.conditions.iter().any(|it| it.kind == CANCELLED);
    let number = attempt::number(status);
    let most = attempt::limit(workflow.spec.retry.as_ref());
    let (Some(retry), Some(ended)) = (&workflow.spec.retry, &status.ended) else {
        return Decision::rest();
    };
    if !failed || held || number >= most {
        return Decision::rest();
    }
    let wait = Duration::try_from(attempt::backoff(retry, number)).unwrap_or_default();
    let moments = &observed.moments;
    let left = wait.saturating_sub(moments.since(moments.at(ended.time)));
    if left.is_zero() {
        return begin(observed, retry.from, "by the retry policy", now);
    }
    let message = format!(
        "attempt {} of {most} begins {} s after the end of the previous attempt",
        number + 1,
        wait.as_secs()
    );
    let status = with_condition(status, RETRYING, true, "Backoff", &message, now);
    let news = status != workflow.status;
    let steps = news.then(|| Step::Status(Box::new(status))).into_iter().collect();
    Decision { steps, requeue: Some(left + Duration::from_millis(100)) }
}

/// Begins another attempt. The old boot Jobs are deleted, because new Jobs use their names.
pub fn begin(observed: &Observed, from: RetryFrom, why: &str, now: Timestamp) -> Decision {
    let workflow = &observed.workflow;
    let options = &workflow.spec.boot_options;
    let boots = options.toggle_allow_netboot || options.boot_mode.is_some();
    let Some(status) = attempt::another(&workflow.status, from, boots, now) else {
        return Decision::rest();
    };
    let message = format!(
        "attempt {} from {}, {why}",
        status.attempts,
        match from {
            RetryFrom::Failed => "the action that did not succeed",
            RetryFrom::Start => "the start",
        }
    );
    let mut steps: Vec<Step> =
        observed.jobs.iter().map(|job| Step::DeleteJob(job.metadata.name.clone())).collect();
    steps.push(Step::Status(Box::new(status)));
    steps.push(Step::Tell { reason: "Retried", message, warning: false });
    Decision { steps, requeue: None }
}

/// State of the agent at the start of a later attempt.
pub enum Agent {
    /// The agent is running, or the box does not boot the machine.
    There,
    /// The agent has not sent a request yet; the value is the remaining wait.
    Unheard(Duration),
    /// The agent is not running.
    Gone,
}

/// Returns the state of the agent. A first attempt always boots the machine ([`Agent::Gone`]).
pub fn agent(observed: &Observed) -> Agent {
    let Some(begun) = observed.workflow.status.attempt_start else { return Agent::Gone };
    let begun = observed.moments.at(begun);
    if !rescue::ours(observed) || observed.life.heard.is_some_and(|heard| heard > begun) {
        return Agent::There;
    }
    match HEARD_WITHIN.saturating_sub(observed.moments.since(begun)) {
        Duration::ZERO => Agent::Gone,
        left => Agent::Unheard(left),
    }
}
