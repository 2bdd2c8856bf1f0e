//! Attempts of a Workflow: the data that a new attempt takes over, and the end of a Workflow.
//!
//! A repeated action gets a new ID. A late report about an earlier attempt therefore has no effect.

use jiff::{SignedDuration, Timestamp};

use super::report::turn;
use super::workflow::{Event, next};
use crate::tinkerbell::{
    ActionAttempt, ActionState, ActionStatus, Attempt, BootOptionsStatus, Retry, RetryFrom, State,
    TaskStatus, WorkflowEnd, WorkflowStatus,
};

/// Maximum number of automatic attempts of a workflow. A user may request more attempts.
pub const ATTEMPTS_MAX: i64 = 20;
/// Maximum number of attempts in the history of a workflow; older attempts are dropped.
pub const HISTORY_MAX: usize = 20;
/// Maximum number of attempts in the history of an action; older attempts are dropped.
pub const ACTION_HISTORY_MAX: usize = 8;
/// Default wait before the second attempt, in seconds.
const BACKOFF_SECS: i64 = 10;
/// Maximum wait before another attempt, in seconds.
const BACKOFF_MAX_SECS: i64 = 3600;

/// Value of `templateRendering` after the tasks were rendered from the Template.
pub const RENDERED: &str = "successful";

/// Conditions that apply to one attempt only. A new attempt removes them.
const OF_ONE_ATTEMPT: [&str; 8] = [
    "AllowNetbootTrue",
    "AllowNetbootFalse",
    crate::bmc::BMC_ERROR,
    "BootJobComplete",
    "BootJobFailed",
    "Cancelled",
    "Retrying",
    "TidiedUp",
];

/// Returns the number of the current attempt of a workflow, from 1.
pub fn number(status: &WorkflowStatus) -> i64 {
    status.attempts.max(1)
}

/// Returns the maximum number of automatic attempts of a workflow: 1 without a retry rule.
pub fn limit(retry: Option<&Retry>) -> i64 {
    retry.map_or(1, |retry| retry.attempts.clamp(1, ATTEMPTS_MAX))
}

/// Returns the wait between the end of attempt `number` and the next attempt. The wait doubles with
/// each attempt, up to one hour.
pub fn backoff(retry: &Retry, number: i64) -> SignedDuration {
    let first = if retry.backoff_seconds > 0 { retry.backoff_seconds } else { BACKOFF_SECS };
    let doublings = u32::try_from(number - 1).unwrap_or(0).min(30);
    let wait = first.saturating_mul(1_i64 << doublings);
    SignedDuration::from_secs(wait.min(BACKOFF_MAX_SECS))
}

/// Returns the wait before the next repeat of an action; `None` if its template sets no wait. The
/// wait doubles with each of the `retried` repeats, up to one hour.
pub fn retry_wait(action: &ActionStatus) -> Option<SignedDuration> {
    let doublings = u32::try_from(action.retried).unwrap_or(0).min(30);
    let wait = action.retry_wait.saturating_mul(1_i64 << doublings);
    (wait > 0).then(|| SignedDuration::from_secs(wait.min(BACKOFF_MAX_SECS)))
}

/// Returns the remaining wait before an action is repeated; `None` if the wait is over. A time more
/// than one hour ahead was stored before the clock was corrected, and is ignored.
pub fn retry_left(action: &ActionStatus, now: Timestamp) -> Option<SignedDuration> {
    let left = action.retry_at?.duration_since(now);
    (left.is_positive() && left.as_secs() <= BACKOFF_MAX_SECS).then_some(left)
}

/// Returns the next attempt of a workflow that has failed or timed out; `None` if the state table
/// has no transition. `boots` is true if the machine must boot, or get permission to boot, before
/// its agent requests work. An attempt from the start renders the current version of the Template
/// (see [`carry_over`]).
pub fn another(
    status: &WorkflowStatus,
    from: RetryFrom,
    boots: bool,
    now: Timestamp,
) -> Option<WorkflowStatus> {
    let stale = from == RetryFrom::Start || status.template_rendering != RENDERED;
    let event = match (stale || status.tasks.is_empty(), boots) {
        (true, _) => Event::RetriedUnrendered,
        (false, true) => Event::RetriedForBoot,
        (false, false) => Event::RetriedForAgent,
    };
    let mut status = WorkflowStatus { state: next(status.state, event)?, ..remembered(status) };
    status.attempts = number(&status) + 1;
    status.attempt_start = Some(now);
    status.current_state = None;
    if stale {
        status.template_rendering.clear();
    }
    status.global_execution_stop = None;
    status.boot_options = BootOptionsStatus::default();
    status.conditions.retain(|it| !OF_ONE_ATTEMPT.contains(&it.kind.as_str()));
    for action in status.tasks.iter_mut().flat_map(|task| &mut task.actions) {
        if from == RetryFrom::Start || action.state != ActionState::Success {
            action.retried = 0;
            begin_again(action);
        }
    }
    status.agent_id = turn(&status).unwrap_or(status.agent_id);
    Some(status)
}

/// Copies IDs and history of earlier attempts to newly rendered tasks, by task and action name.
pub fn carry_over(before: &[TaskStatus], fresh: Vec<TaskStatus>) -> Vec<TaskStatus> {
    let mut fresh = fresh;
    for task in &mut fresh {
        let Some(old) = before.iter().find(|old| old.name == task.name) else { continue };
        task.id.clone_from(&old.id);
        for action in &mut task.actions {
            let Some(old) = old.actions.iter().find(|old| old.name == action.name) else {
                continue;
            };
            action.id.clone_from(&old.id);
            action.attempts = old.attempts;
            action.history.clone_from(&old.history);
        }
    }
    fresh
}

/// Returns the status with the current attempt moved into the history.
fn remembered(status: &WorkflowStatus) -> WorkflowStatus {
    let mut after = status.clone();
    let ended = after.ended.take().unwrap_or_default();
    after.history.push(Attempt {
        attempt: number(status),
        state: status.state,
        reason: ended.reason,
        message: ended.message,
        time: ended.time,
    });
    keep_last(&mut after.history, HISTORY_MAX);
    after
}

/// Resets an action to pending. An action that had started gets a new ID.
pub fn begin_again(action: &mut ActionStatus) {
    if action.state == ActionState::Pending {
        return;
    }
    let last = ActionStatus {
        state: ActionState::Pending,
        attempts: action.attempts.max(1) + 1,
        execution_start: None,
        execution_stop: None,
        execution_duration: String::new(),
        message: String::new(),
        deadline: None,
        retry_at: None,
        boot_id: String::new(),
        ..action.clone()
    };
    let last = std::mem::replace(action, last);
    let end = format!("-{}", last.attempts);
    let first = last.id.strip_suffix(&end).filter(|_| last.attempts > 1).unwrap_or(&last.id);
    action.id = format!("{first}-{}", action.attempts);
    action.history.push(ActionAttempt {
        id: last.id,
        state: last.state,
        message: last.message,
        execution_start: last.execution_start,
        execution_stop: last.execution_stop,
    });
    keep_last(&mut action.history, ACTION_HISTORY_MAX);
}

fn keep_last<T>(list: &mut Vec<T>, most: usize) {
    list.drain(..list.len().saturating_sub(most));
}

/// Ends a workflow for a cause other than an agent's report; `None` if the state table has no
/// transition. The running action becomes failed or timed out, so that its agent stops the action.
pub fn end(
    status: &WorkflowStatus,
    event: Event,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Option<WorkflowStatus> {
    let mut status = WorkflowStatus { state: next(status.state, event)?, ..status.clone() };
    if !status.state.ended() {
        return Some(status);
    }
    let stopped = match status.state {
        State::Timeout => ActionState::Timeout,
        _ => ActionState::Failed,
    };
    let running = |action: &&mut ActionStatus| action.state == ActionState::Running;
    for action in status.tasks.iter_mut().flat_map(|task| &mut task.actions).filter(running) {
        action.state = stopped;
        action.message = message.to_owned();
        action.execution_stop = Some(now);
        action.deadline = None;
        if let Some(current) = status.current_state.as_mut().filter(|it| it.action_id == action.id)
        {
            current.state = stopped;
        }
    }
    status.ended =
        Some(WorkflowEnd { time: now, reason: reason.to_owned(), message: message.to_owned() });
    Some(status)
}

#[cfg(test)]
mod tests;
