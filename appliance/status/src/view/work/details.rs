//! One workflow with its actions.

use api::tinkerbell::{ActionState, ActionStatus, Workflow};
use jiff::Timestamp;

use super::super::Text;
use super::Work;

/// Workflow with its actions, for its own page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkDetails {
    /// Summary, as in the list of workflows.
    pub work: Work,
    /// Actions in the order of execution, also those that have not begun.
    pub actions: Vec<WorkAction>,
}

/// Action of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkAction {
    /// Name from the template.
    pub name: Text,
    /// State of the action in the latest attempt of the workflow.
    pub state: ActionState,
    /// Last message about the action; may be empty.
    pub message: Text,
    /// Number of repeats in the latest attempt of the workflow.
    pub repeats: u32,
    /// Time at which the agent started the action; `None` before.
    pub started: Option<Timestamp>,
    /// Time at which the action ended; `None` before.
    pub ended: Option<Timestamp>,
}

impl WorkDetails {
    /// Summarizes a Workflow with its actions.
    pub fn of(workflow: &Workflow) -> Self {
        let actions = workflow.status.tasks.iter().flat_map(|task| &task.actions);
        Self { work: Work::of(workflow), actions: actions.map(WorkAction::of).collect() }
    }
}

impl WorkAction {
    fn of(action: &ActionStatus) -> Self {
        Self {
            name: action.name.as_str().into(),
            state: action.state,
            message: action.message.as_str().into(),
            repeats: u32::try_from(action.retried).unwrap_or(0),
            started: action.execution_start,
            ended: action.execution_stop,
        }
    }

    /// Returns the duration in milliseconds, up to `now` for a running action; `None` for an action
    /// that has not begun.
    pub fn millis(&self, now: Timestamp) -> Option<u64> {
        let running = self.state == ActionState::Running;
        let end = self.ended.or(running.then_some(now))?;
        u64::try_from(end.duration_since(self.started?).as_millis()).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::WorkDetails;

    #[test]
    fn a_workflow_has_the_duration_of_each_action() {
        let workflow = serde_json::from_value(json!({
            "metadata": { "name": "wf-1" },
            "status": { "state": "RUNNING", "tasks": [{ "actions": [
                { "name": "a", "state": "SUCCESS", "executionStart": "2026-11-28T10:00:00Z",
                  "executionStop": "2026-11-28T10:00:02.5Z", "retried": 1 },
                { "name": "b", "state": "RUNNING", "executionStart": "2026-11-28T10:00:03Z" },
                { "name": "c", "state": "PENDING" },
            ] }] },
        }));
        let details = WorkDetails::of(&workflow.unwrap());
        let now = "2026-11-28T10:00:10Z".parse().unwrap();
        let millis: Vec<_> = details.actions.iter().map(|action| action.millis(now)).collect();
        assert_eq!(millis, [Some(2_500), Some(7_000), None]);
        assert_eq!((details.actions[0].repeats, details.work.actions), (1, 3));
    }
}
