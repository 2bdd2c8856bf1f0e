//! Messages of older workers (tink-worker), as validated types. They identify actions by name and
//! by position in the workflow; the older protocol has no ids and no attempts.

use std::fmt;

use crate::message::ActionState;

/// Action that an older worker must run now (upstream's WorkflowContext).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Turn {
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// Id of the worker whose action is next.
    pub worker_id: String,
    /// Name of the task.
    pub task_name: String,
    /// Name of the action.
    pub action_name: String,
    /// Position of the action among all actions of the workflow, from 0.
    pub index: usize,
    /// Number of actions in the workflow.
    pub total: usize,
}

/// All actions of a workflow, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActionList {
    /// Id of the worker whose action is next.
    pub worker_id: String,
    /// Actions in order. Actions of other workers have only names, for the worker to find its
    /// position.
    pub actions: Vec<ListedAction>,
}

/// One action of [`ActionList`].
#[derive(Clone, PartialEq, Default)]
pub struct ListedAction {
    /// Name of the action's task.
    pub task_name: String,
    /// Name of the action.
    pub name: String,
    /// OCI reference of the image.
    pub image: String,
    /// Timeout in seconds. A worker uses one hour for 0.
    pub timeout_secs: i64,
    /// Replacement for the image's arguments (Docker's CMD); empty keeps them.
    pub command: Vec<String>,
    /// Id of the worker that runs the action.
    pub worker_id: String,
    /// Bind mounts of the container, `host:container[:options]`.
    pub volumes: Vec<String>,
    /// Environment variables, `KEY=value`, sorted by key. May contain secrets; never logged.
    pub environment: Vec<String>,
    /// PID namespace: `host` or empty.
    pub pid: String,
}

/// Omits command and environment, which may contain secrets.
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

/// Report of an older worker about an action. Workflow, task name and action name are never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedReport {
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// Id of the reporting worker; may be empty.
    pub worker_id: String,
    /// Name of the task.
    pub task_name: String,
    /// Name of the action.
    pub action_name: String,
    /// State of the action.
    pub state: ActionState,
    /// Duration of the action in seconds; 0 before the end.
    pub seconds: i64,
    /// Text for the operator; empty for a failed action. At most 4 KiB.
    pub message: String,
}
