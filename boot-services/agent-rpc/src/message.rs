//! Messages of the service as validated types.

use std::fmt;

use jiff::Timestamp;

use crate::{Attributes, Inventory};

/// Action that an agent must run now (upstream's ActionResponse).
#[derive(Clone, PartialEq, Default)]
pub struct Assignment {
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// Id of the task.
    pub task_id: String,
    /// Id of the agent that the task is assigned to.
    pub agent_id: String,
    /// Id of the action.
    pub action_id: String,
    /// Name of the action from the template, for display.
    pub name: String,
    /// OCI reference of the action.
    pub image: String,
    /// Timeout of the action in seconds; 0 means without limit.
    pub timeout_secs: i64,
    /// Replacement for the image's arguments (Docker's CMD); empty keeps them.
    pub command: Vec<String>,
    /// Bind mounts of the container, `host:container[:options]`.
    pub volumes: Vec<String>,
    /// Environment variables, `KEY=value`, sorted by key. May contain secrets; never logged.
    pub environment: Vec<String>,
    /// PID namespace, `host` or empty. Older field; the newer field is [`Namespaces::pid`].
    pub pid: String,
    /// Namespaces of the host to join; `None` is none.
    pub namespaces: Option<Namespaces>,
    /// Arguments for one more run of the image after a failure; none if empty.
    pub on_failure: Vec<String>,
    /// Arguments for one more run of the image after a timeout; none if empty.
    pub on_timeout: Vec<String>,
}

/// Omits command and environment, which may contain secrets.
impl fmt::Debug for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assignment")
            .field("workflow_id", &self.workflow_id)
            .field("task_id", &self.task_id)
            .field("agent_id", &self.agent_id)
            .field("action_id", &self.action_id)
            .field("name", &self.name)
            .field("image", &self.image)
            .field("timeout_secs", &self.timeout_secs)
            .finish_non_exhaustive()
    }
}

/// Linux namespaces of an action's container; empty is a separate namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespaces {
    /// Network namespace: `host` or empty.
    pub network: String,
    /// PID namespace: `host` or empty.
    pub pid: String,
}

/// State of an action, as its agent reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionState {
    /// The action has not begun.
    Pending,
    /// The action is running.
    Running,
    /// The action ended with a failure.
    Failed,
    /// The action was stopped by its timeout.
    Timeout,
    /// The action ended with success.
    Success,
}

impl fmt::Display for ActionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Failed => "FAILED",
            Self::Timeout => "TIMEOUT",
            Self::Success => "SUCCESS",
        })
    }
}

/// Report about an action (upstream's ActionStatusRequest). The ids of workflow, task and action
/// are never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// Id of the reporting agent; may be empty from a stock agent.
    pub agent_id: String,
    /// Id of the task.
    pub task_id: String,
    /// Id of the action.
    pub action_id: String,
    /// Name of the action from the template, for display.
    pub action_name: String,
    /// State of the action.
    pub state: ActionState,
    /// Start time by the agent's clock; `None` in a stock agent's RUNNING report.
    pub start: Option<Timestamp>,
    /// End time by the agent's clock; `None` before the end.
    pub stop: Option<Timestamp>,
    /// Duration as text, such as `1m2s`.
    pub duration: String,
    /// Result or reason of the failure; a stock agent sends a constant text. At most 4 KiB.
    pub message: String,
}

/// Prefix of [`Progress::message`] while the action waits for a temporarily unavailable server. The
/// reason follows.
pub const WAITING: &str = "waiting: ";

/// Maximum output lines in one [`Progress`].
pub const OUTPUT_LINES: usize = 100;

/// Progress of a running action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Id of the reporting agent.
    pub agent_id: String,
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// Id of the task.
    pub task_id: String,
    /// Id of the action.
    pub action_id: String,
    /// Number of processed bytes.
    pub bytes_done: u64,
    /// Total number of bytes; 0 if unknown.
    pub bytes_total: u64,
    /// Current step, as text for the operator.
    pub message: String,
    /// Output lines of the action since the last message, at most [`OUTPUT_LINES`].
    pub output: Vec<String>,
}

/// Disk that a hint selected; sent before the action uses the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskChoice {
    /// Id of the reporting agent.
    pub agent_id: String,
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// Id of the task.
    pub task_id: String,
    /// Id of the action.
    pub action_id: String,
    /// Hint without its partition, such as `minSizeGigabytes=200,model=Samsung`.
    pub hint: String,
    /// World wide name, `naa.…` or `eui.…`; empty if unknown.
    pub wwn: String,
    /// Serial number; empty if unknown.
    pub serial: String,
    /// Model name of the disk.
    pub model: String,
    /// Size of the disk in bytes.
    pub bytes: u64,
}

/// Hardware facts that an agent reports about its machine.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentReport {
    /// Id of the reporting agent.
    pub agent_id: String,
    /// Hardware attributes in Tinkerbell's format. A Tinbox agent sends them once per boot.
    pub attributes: Option<Attributes>,
    /// Hardware facts beyond Tinkerbell's attributes; `None` from a stock agent.
    pub inventory: Option<Inventory>,
}

/// First message of an agent after the boot of its machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Hello {
    /// Id of the agent.
    pub agent_id: String,
    /// Version of the agent.
    pub agent_version: String,
    /// Random boot id of the kernel; a new id means a new boot.
    pub boot_id: String,
    /// Hardware attributes in Tinkerbell's format.
    pub attributes: Option<Attributes>,
    /// Inventory of the machine, from a Tinbox agent. At most 64 KiB.
    pub inventory: Option<Inventory>,
}

/// Error status of a call. Each variant is one gRPC code, as in Tinkerbell's server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// NOT_FOUND: no workflow, no task, or no action left for this agent.
    #[error("{0}")]
    NotFound(String),
    /// FAILED_PRECONDITION: the workflow cannot run yet, or has ended.
    #[error("{0}")]
    Precondition(String),
    /// INVALID_ARGUMENT: a field of the request is missing or invalid.
    #[error("{0}")]
    InvalidArgument(String),
    /// UNAUTHENTICATED: the token is missing, or is not the token of this agent.
    #[error("{0}")]
    Unauthenticated(String),
    /// UNAVAILABLE: a temporary failure; the agent tries again.
    #[error("{0}")]
    Unavailable(String),
    /// INTERNAL: an error of the box itself.
    #[error("{0}")]
    Internal(String),
}

impl Refusal {
    /// Returns true if a retry of the same request cannot succeed.
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::InvalidArgument(_) | Self::Precondition(_))
    }
}
