//! Effect of an agent's report on a Workflow (upstream tink `internal/grpc`, ReportActionStatus).

use jiff::{SignedDuration, Timestamp};

use super::attempt::{begin_again, retry_wait};
use super::workflow::{Event, next};
use crate::tinkerbell::{ActionState, ActionStatus, CurrentState, WorkflowEnd, WorkflowStatus};

/// Extra time after the time limit of an action before the box times the action out. The agent
/// applies the limit as well, and its report may still be in transit.
pub const TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// Report of an agent about one action.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// ID of the reporting agent.
    pub agent_id: String,
    /// ID of the task.
    pub task_id: String,
    /// ID of the action.
    pub action_id: String,
    /// State of the action.
    pub state: ActionState,
    /// Duration for display, such as `1m2s`.
    pub duration: String,
    /// Message for a person.
    pub message: String,
    /// Boot ID of the machine that the agent runs on; empty if unknown.
    pub boot_id: String,
}

/// Reason why a report is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// The workflow does not contain the action of the report.
    #[error("the workflow has no action {action_id} in task {task_id}")]
    Action {
        /// Task of the report.
        task_id: String,
        /// Action of the report.
        action_id: String,
    },
    /// The action cannot start any more; the agent must not run the action.
    #[error("action {action_id} cannot start: {why}")]
    Late {
        /// Action of the report.
        action_id: String,
        /// Reason, as the end of a sentence.
        why: &'static str,
    },
    /// The action belongs to another agent.
    #[error("action {action_id} belongs to agent {owner}, not to {agent_id}")]
    Agent {
        /// Action of the report.
        action_id: String,
        /// Agent that the action belongs to.
        owner: String,
        /// Agent that sent the report.
        agent_id: String,
    },
}

/// Applies a report to `status`; returns `true` when the status changed.
///
/// A report of the end of an ended action, or of an action of an ended workflow, is acknowledged
/// and changes nothing: an agent may repeat a report whose acknowledgment was lost. A report of the
/// start of such an action is rejected: it was sent before the workflow ended, and the disk must
/// not be changed now. All times are from the box's clock, because an agent's clock may be wrong by
/// years.
///
/// # Errors
/// The action does not exist, belongs to another agent, or must not start any more.
pub fn take(
    status: &mut WorkflowStatus,
    report: &Report,
    now: Timestamp,
) -> Result<bool, ReportError> {
    let (at, is_current) = find(status, report)?;
    let begins = report.state == ActionState::Running;
    let late = |why| {
        let action_id = report.action_id.clone();
        if begins { Err(ReportError::Late { action_id, why }) } else { Ok(false) }
    };
    if !status.state.serves() {
        return late("its workflow has ended");
    }
    if !is_current {
        return late("another attempt has started");
    }
    let action = &status.tasks[at.0].actions[at.1];
    if !matches!(action.state, ActionState::Pending | ActionState::Running) {
        return late("it has ended");
    }
    if first_open(status) != Some(at) {
        // The action was served before the workflow was restarted from its first action.
        return late("an earlier action is not complete");
    }
    let action = &mut status.tasks[at.0].actions[at.1];
    match report.state {
        ActionState::Pending => return Ok(false),
        ActionState::Running => begin(action, report, now),
        _ => action.execution_duration.clone_from(&report.duration),
    }
    settle(status, at, report.state, &report.message, now);
    Ok(true)
}

fn begin(action: &mut ActionStatus, report: &Report, now: Timestamp) {
    action.execution_start = Some(now);
    action.execution_stop = None;
    action.execution_duration.clear();
    action.boot_id.clone_from(&report.boot_id);
    action.retry_at = None;
    action.deadline = allowance(action).and_then(|limit| now.saturating_add(limit).ok());
}

/// Returns the time from the start of an action after which the box times the action out; `None`
/// for an action without a limit. An action with `on-failure` or `on-timeout` arguments gets the
/// limit twice, for the additional run.
pub fn allowance(action: &ActionStatus) -> Option<SignedDuration> {
    let limit = SignedDuration::from_secs(action.timeout);
    let handled = !action.on_failure.is_empty() || !action.on_timeout.is_empty();
    let handler = if handled { limit } else { SignedDuration::ZERO };
    let whole = limit.saturating_add(handler).saturating_add(TOLERANCE);
    (action.timeout > 0).then_some(whole)
}

/// Returns the status with the running action timed out at `now`; `None` if no action runs.
pub fn time_out(status: &WorkflowStatus, message: &str, now: Timestamp) -> Option<WorkflowStatus> {
    let at = running(status).filter(|_| status.state.serves())?;
    let mut status = status.clone();
    settle(&mut status, at, ActionState::Timeout, message, now);
    Some(status)
}

/// Returns the status with a new message for the running action. Returns `None` if `action_id` is
/// not the running action of `agent_id`, or already has this message.
pub fn say(
    status: &WorkflowStatus,
    agent_id: &str,
    action_id: &str,
    message: &str,
) -> Option<WorkflowStatus> {
    let (task_at, action_at) = running(status).filter(|_| status.state.serves())?;
    let task = &status.tasks[task_at];
    let action = &task.actions[action_at];
    let is_news = task.agent_id == agent_id && action.id == action_id && action.message != message;
    is_news.then(|| {
        let mut status = status.clone();
        message.clone_into(&mut status.tasks[task_at].actions[action_at].message);
        status
    })
}

/// Returns task and action index of the first action that has not succeeded.
fn first_open(status: &WorkflowStatus) -> Option<(usize, usize)> {
    place(status, |action| action.state != ActionState::Success)
}

/// Returns task and action index of the running action; `None` if no action runs.
pub fn running(status: &WorkflowStatus) -> Option<(usize, usize)> {
    place(status, |action| action.state == ActionState::Running)
}

fn place(status: &WorkflowStatus, is_it: impl Fn(&ActionStatus) -> bool) -> Option<(usize, usize)> {
    status.tasks.iter().enumerate().find_map(|(at, task)| {
        task.actions.iter().position(&is_it).map(|action_at| (at, action_at))
    })
}

/// Applies a new state of an action to its workflow. A failed action with repeats left is repeated.
fn settle(
    status: &mut WorkflowStatus,
    at: (usize, usize),
    state: ActionState,
    message: &str,
    now: Timestamp,
) {
    let task = &mut status.tasks[at.0];
    let action = &mut task.actions[at.1];
    action.state = state;
    message.clone_into(&mut action.message);
    if state != ActionState::Running {
        action.execution_stop = Some(now);
        action.deadline = None;
    }
    let failed = matches!(state, ActionState::Failed | ActionState::Timeout);
    let again = failed && action.retried < action.retries;
    if again {
        let wait = retry_wait(action);
        begin_again(action);
        action.retried += 1;
        action.retry_at = wait.and_then(|wait| now.saturating_add(wait).ok());
    }
    let action = &task.actions[at.1];
    status.current_state = Some(CurrentState {
        agent_id: task.agent_id.clone(),
        task_id: task.id.clone(),
        action_id: action.id.clone(),
        state: action.state,
        action_name: action.name.clone(),
        task_name: task.name.clone(),
    });
    if !again {
        let sentence = format!("action {}: {message}", action.name);
        advance(status, state, sentence, now);
    }
}

/// Returns task and action index of the reported action, and true if the report is about the
/// current attempt of the action.
fn find(status: &WorkflowStatus, report: &Report) -> Result<((usize, usize), bool), ReportError> {
    let id = &report.action_id;
    let is_it = |action: &ActionStatus| {
        action.id == *id || action.history.iter().any(|attempt| attempt.id == *id)
    };
    let found = status.tasks.iter().enumerate().find_map(|(task_at, task)| {
        let action_at = task.actions.iter().position(is_it)?;
        (task.id == report.task_id).then_some((task_at, action_at))
    });
    let Some((task_at, action_at)) = found else {
        return Err(ReportError::Action {
            task_id: report.task_id.clone(),
            action_id: report.action_id.clone(),
        });
    };
    let task = &status.tasks[task_at];
    if task.agent_id != report.agent_id {
        return Err(ReportError::Agent {
            action_id: report.action_id.clone(),
            owner: task.agent_id.clone(),
            agent_id: report.agent_id.clone(),
        });
    }
    Ok(((task_at, action_at), task.actions[action_at].id == *id))
}

fn advance(status: &mut WorkflowStatus, reported: ActionState, sentence: String, now: Timestamp) {
    let event = match reported {
        ActionState::Pending => return,
        ActionState::Running => {
            if status.global_timeout > 0 && status.global_execution_stop.is_none() {
                let limit = SignedDuration::from_secs(status.global_timeout);
                status.global_execution_stop = now.saturating_add(limit).ok();
            }
            Event::ActionStarted
        }
        ActionState::Failed => Event::ActionFailed,
        ActionState::Timeout => Event::ActionTimedOut,
        ActionState::Success => match turn(status) {
            Some(agent) => {
                status.agent_id = agent;
                return;
            }
            None => Event::LastActionSucceeded,
        },
    };
    if let Some(state) = next(status.state, event) {
        status.state = state;
        if state.ended() {
            let reason = format!("{event:?}");
            status.ended = Some(WorkflowEnd { time: now, reason, message: sentence });
        }
    }
}

/// Returns the ID of the agent that must act next; `None` if every action has succeeded.
pub fn turn(status: &WorkflowStatus) -> Option<String> {
    status
        .tasks
        .iter()
        .find(|task| task.actions.iter().any(|action| action.state != ActionState::Success))
        .map(|task| task.agent_id.clone())
}

#[cfg(test)]
mod tests;
