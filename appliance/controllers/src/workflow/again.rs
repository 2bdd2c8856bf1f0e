//! Another attempt of a workflow that failed or timed out.

use std::time::Duration;

use api::state::attempt;
use api::tinkerbell::{RetryFrom, State};
use jiff::Timestamp;

use super::boot;
use super::decide::{Decision, Step, with_condition};
use super::observe::Observed;
use super::request::CANCELLED;
use super::rescue;

/// Condition of a workflow that is about to be tried again.
const RETRYING: &str = "Retrying";
/// How long an agent has to be heard after another attempt began before its machine is booted:
/// ours ask every two seconds, upstream's every five.
const HEARD_WITHIN: Duration = Duration::from_secs(15);

/// What is due after the end: tidying up, then another attempt when its time has come.
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
        return self::retry(observed, retry.from, "by its retry policy", now);
    }
    let message = format!(
        "attempt {} of {most} begins {} s after the end of the last",
        number + 1,
        wait.as_secs()
    );
    let status = with_condition(status, RETRYING, true, "Backoff", &message, now);
    let news = status != workflow.status;
    let steps = news.then(|| Step::Status(Box::new(status))).into_iter().collect();
    Decision { steps, again: Some(left + Duration::from_millis(100)) }
}

/// Begin another attempt. The boot Jobs of the last go, so that this one's may have their names.
pub fn retry(observed: &Observed, from: RetryFrom, why: &str, now: Timestamp) -> Decision {
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
    Decision { steps, again: None }
}

/// Whether the machine of a later attempt is in the agent OS already.
pub enum Agent {
    /// It is, or it is not the box's to boot.
    There,
    /// It may be: it is not heard of yet, and this long it has.
    Unheard(Duration),
    /// It is not.
    Gone,
}

/// Look for the agent of a later attempt; a first attempt always boots its machine.
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
