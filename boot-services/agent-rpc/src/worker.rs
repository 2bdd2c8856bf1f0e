//! Messages of older workers (tink-worker), as checked values. They identify actions by name and by
//! position in the workflow's list: there are no ids, and no attempts.

use std::fmt;

use crate::message::ActionState;

/// The action that it is a worker's turn to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Turn {
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// Id of the worker that must act.
    pub worker_id: String,
    /// The name of the task.
    pub task_name: String,
    /// The name of the action.
    pub action_name: String,
    /// The action's place among all the workflow's actions, from 0.
    pub index: usize,
    /// Number of actions in the workflow.
    pub total: usize,
}

/// Every action of a workflow, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActionList {
    /// Id of the worker that must act.
    pub worker_id: String,
    /// The actions. Of another worker's, only the names are of use to this one.
    pub actions: Vec<ListedAction>,
}

/// An action as it stands in the list.
#[derive(Clone, PartialEq, Default)]
pub struct ListedAction {
    /// The name of its task.
    pub task_name: String,
    /// Name of the action.
    pub name: String,
    /// OCI reference of the image.
    pub image: String,
    /// Seconds it may take; a worker takes 0 for an hour.
    pub timeout_secs: i64,
    /// Overrides the image's command.
    pub command: Vec<String>,
    /// Id of the worker that runs it.
    pub worker_id: String,
    /// Bind mounts of the container, `host:container[:options]`.
    pub volumes: Vec<String>,
    /// `KEY=value`, sorted by key. May hold secrets: never log it.
    pub environment: Vec<String>,
    /// PID namespace: `host` or empty.
    pub pid: String,
}

/// Leaves out command and environment, which may hold secrets.
impl fmt::Debug for ListedAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListedAction")
            .field("task_name", &self.task_name)
            .field("name", &self.name)
            .field("image", &self.image)
            .field("timeout_secs", &self.timeout_secs)
            .field("worker_id", &self.worker_id)
            .finish_non_exhaustive()
    }
}

/// Report about an action. Workflow, task and action are not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedReport {
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// The reporting worker; it may leave it empty.
    pub worker_id: String,
    /// The name of the task.
    pub task_name: String,
    /// The name of the action.
    pub action_name: String,
    /// State of the action.
    pub state: ActionState,
    /// Duration in seconds; 0 before its end.
    pub seconds: i64,
    /// Text for people; empty for a failed action. At most 4 KiB.
    pub message: String,
}
