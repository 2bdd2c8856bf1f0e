//! Calls of older workers (tink-worker), which identify actions by name, as calls of newer agents.

use agent_rpc::{ActionList, ListedAction, NamedReport, Refusal, Report, Turn};
use api::meta::ObjectKey;
use api::state::{report, worker};
use api::tinkerbell::{ActionState, WORKFLOW, Workflow};
use objects::{ObjectError, fetch};

use crate::Service;
use crate::wire::{action_state, assignment, workflow_key};

/// Message of a failed action without a reason from the worker.
const NO_REASON: &str = "the action failed; an older tink-worker does not report the reason";

impl Service {
    /// Returns the action that the worker must run next; `None` if the worker must wait.
    pub(crate) async fn turn_of(&self, worker_id: &str) -> Result<Option<Turn>, Refusal> {
        let given = match self.assignment(worker_id).await {
            Ok(given) => given,
            Err(Refusal::NotFound(_) | Refusal::Precondition(_)) => return Ok(None),
            Err(refusal) => return Err(refusal),
        };
        let key = workflow_key(&given.workflow_id)?;
        let workflow = self.workflow(&key).await?;
        let mut places = worker::list(&workflow.status).enumerate();
        // Absent if the workflow was changed meanwhile; the worker sends the request again.
        let place = places.find(|(_, (_, action))| action.id == given.action_id);
        Ok(place.map(|(index, (task, action))| Turn {
            workflow_id: given.workflow_id,
            worker_id: task.agent_id.clone(),
            task_name: task.name.clone(),
            action_name: action.name.clone(),
            index,
            total: worker::list(&workflow.status).count(),
        }))
    }

    /// Lists every action of a workflow for the worker that must act next. Actions of other workers
    /// contain only names, which the worker needs to find its own position.
    pub(crate) async fn list(&self, workflow_id: &str) -> Result<ActionList, Refusal> {
        let key = workflow_key(workflow_id)?;
        let workflow = self.workflow(&key).await?;
        let status = &workflow.status;
        let Some(worker_id) = report::turn(status).filter(|_| status.state.serves()) else {
            return Err(Refusal::Precondition(format!("workflow {key} has no action to run")));
        };
        let actions = worker::list(status).map(|(task, action)| {
            let named = ListedAction {
                task_name: task.name.clone(),
                name: action.name.clone(),
                worker_id: task.agent_id.clone(),
                ..ListedAction::default()
            };
            if task.agent_id != worker_id {
                return named;
            }
            let assigned = assignment(&key, task, action);
            let namespaces = assigned.namespaces.unwrap_or_default();
            ListedAction {
                image: assigned.image,
                timeout_secs: action.timeout.max(0),
                command: assigned.command,
                volumes: assigned.volumes,
                environment: self.environment_of(task, action, true),
                pid: if assigned.pid.is_empty() { namespaces.pid } else { assigned.pid },
                ..named
            }
        });
        Ok(ActionList { actions: actions.collect(), worker_id })
    }

    /// Applies a worker's report like a report of a newer agent. A worker repeats a rejected report
    /// without end. A rejected report therefore does not count as a message, so that a hanging
    /// machine is booted again.
    pub(crate) async fn take_named(&self, from: &NamedReport) -> Result<(), Refusal> {
        let begins = from.state == agent_rpc::ActionState::Running;
        let workflow = match self.workflow(&workflow_key(&from.workflow_id)?).await {
            // The workflow is deleted, so the end of its action is not needed. `Ok` lets the worker
            // continue.
            Err(Refusal::NotFound(_)) if !begins => return Ok(()),
            found => found?,
        };
        if let Some(report) = report_by_id(from, &workflow)? {
            self.take(&report).await?;
        }
        self.record_message(&from.worker_id);
        Ok(())
    }

    async fn workflow(&self, key: &ObjectKey) -> Result<Workflow, Refusal> {
        match fetch(self.objects.as_ref(), WORKFLOW, key).await {
            Ok(workflow) => Ok(workflow),
            Err(ObjectError::NotFound(why)) => Err(Refusal::NotFound(why)),
            Err(error) => Err(Refusal::Internal(error.to_string())),
        }
    }
}

/// Converts a report with names to a report with IDs; `None` for a report that changes nothing.
fn report_by_id(from: &NamedReport, workflow: &Workflow) -> Result<Option<Report>, Refusal> {
    let found = worker::named(&workflow.status, &from.task_name, &from.action_name);
    let Some((task, action)) = found else {
        return Err(Refusal::NotFound(format!(
            "workflow {} has no action {:?} in a task {:?}",
            from.workflow_id, from.action_name, from.task_name
        )));
    };
    let state = action_state(from.state);
    if worker::is_late(action, state) {
        return Ok(None);
    }
    let failed = matches!(state, ActionState::Failed | ActionState::Timeout);
    let message = if failed && from.message.is_empty() { NO_REASON } else { &from.message };
    let began = matches!(state, ActionState::Pending | ActionState::Running);
    Ok(Some(Report {
        workflow_id: from.workflow_id.clone(),
        agent_id: from.worker_id.clone(),
        task_id: task.id.clone(),
        action_id: action.id.clone(),
        action_name: action.name.clone(),
        state: from.state,
        start: None,
        stop: None,
        duration: if began { String::new() } else { go_duration(from.seconds) },
        message: message.to_owned(),
    }))
}

/// Formats a duration in seconds as Go does: `1m2s`.
fn go_duration(seconds: i64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests;
