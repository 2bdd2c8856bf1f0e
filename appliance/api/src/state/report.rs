//! What an agent's report changes (upstream tink `internal/grpc`, ReportActionStatus).

use jiff::Timestamp;

use super::workflow::{Event, next};
use crate::tinkerbell::{ActionState, CurrentState, WorkflowStatus};

/// What an agent says of one action.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Who says it.
    pub agent_id: String,
    /// Task.
    pub task_id: String,
    /// Action.
    pub action_id: String,
    /// State of the action.
    pub state: ActionState,
    /// When the agent started it.
    pub start: Option<Timestamp>,
    /// When it ended.
    pub stop: Option<Timestamp>,
    /// For people: `1m2s`.
    pub duration: String,
    /// For people.
    pub message: String,
}

/// Why a report is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No such action.
    #[error("the workflow has no action {action_id} in task {task_id}")]
    Action {
        /// Task of the report.
        task_id: String,
        /// Action of the report.
        action_id: String,
    },
    /// It is too late to begin the action: whoever asks must not do it.
    #[error("action {action_id} is not to be begun: {why}")]
    Late {
        /// Action of the report.
        action_id: String,
        /// Why.
        why: &'static str,
    },
    /// The action is somebody else's.
    #[error("action {action_id} belongs to agent {owner}, not to {agent_id}")]
    Agent {
        /// Action of the report.
        action_id: String,
        /// Whose it is.
        owner: String,
        /// Who reported.
        agent_id: String,
    },
}

/// Take a report into `status`; `true` when something changed.
///
/// The end of an ended action, or of an action of an ended workflow, is acknowledged and changes
/// nothing, so an agent may repeat a report whose acknowledgement it lost. Beginning one is
/// refused: the report was under way while the workflow was given up, and the disk must not be
/// touched now.
///
/// # Errors
/// [`Refused`]: no such action, another agent's, or too late to begin it.
pub fn take(status: &mut WorkflowStatus, report: &Report, now: Timestamp) -> Result<bool, Refused> {
    let (task_at, action_at) = find(status, report)?;
    let begins = report.state == ActionState::Running;
    let late = |why| {
        let action_id = report.action_id.clone();
        if begins { Err(Refused::Late { action_id, why }) } else { Ok(false) }
    };
    if !status.state.serves() {
        return late("its workflow has ended");
    }
    let task = &mut status.tasks[task_at];
    let action = &mut task.actions[action_at];
    let ended = !matches!(action.state, ActionState::Pending | ActionState::Running);
    if ended {
        return late("it has ended");
    }
    if report.state == ActionState::Pending {
        return Ok(false);
    }

    action.state = report.state;
    action.message.clone_from(&report.message);
    if report.state == ActionState::Running {
        action.execution_start = Some(report.start.unwrap_or(now));
        action.execution_stop = None;
        action.execution_duration.clear();
    } else {
        action.execution_start = action.execution_start.or(report.start);
        action.execution_stop = Some(report.stop.unwrap_or(now));
        action.execution_duration.clone_from(&report.duration);
    }
    status.current_state = Some(CurrentState {
        agent_id: task.agent_id.clone(),
        task_id: task.id.clone(),
        action_id: action.id.clone(),
        state: action.state,
        action_name: action.name.clone(),
        task_name: task.name.clone(),
    });
    advance(status, report.state, now);
    Ok(true)
}

fn find(status: &WorkflowStatus, report: &Report) -> Result<(usize, usize), Refused> {
    let found = status.tasks.iter().enumerate().find_map(|(task_at, task)| {
        let action_at = task.actions.iter().position(|action| action.id == report.action_id)?;
        (task.id == report.task_id).then_some((task_at, action_at))
    });
    let Some((task_at, action_at)) = found else {
        return Err(Refused::Action {
            task_id: report.task_id.clone(),
            action_id: report.action_id.clone(),
        });
    };
    let owner = &status.tasks[task_at].agent_id;
    if *owner != report.agent_id {
        return Err(Refused::Agent {
            action_id: report.action_id.clone(),
            owner: owner.clone(),
            agent_id: report.agent_id.clone(),
        });
    }
    Ok((task_at, action_at))
}

fn advance(status: &mut WorkflowStatus, reported: ActionState, now: Timestamp) {
    let event = match reported {
        ActionState::Pending => return,
        ActionState::Running => {
            if status.global_timeout > 0 && status.global_execution_stop.is_none() {
                let limit = jiff::SignedDuration::from_secs(status.global_timeout);
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
    }
}

/// The agent whose turn it is; `None` when every action has succeeded.
pub fn turn(status: &WorkflowStatus) -> Option<String> {
    status
        .tasks
        .iter()
        .find(|task| task.actions.iter().any(|action| action.state != ActionState::Success))
        .map(|task| task.agent_id.clone())
}

#[cfg(test)]
mod tests;
