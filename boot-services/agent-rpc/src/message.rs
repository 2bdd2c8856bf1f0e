//! Messages as checked values.

use std::fmt;

use jiff::Timestamp;

use crate::{Attributes, Inventory};

/// One action an agent must run now.
#[derive(Clone, PartialEq, Default)]
pub struct Assignment {
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// The task within the workflow.
    pub task_id: String,
    /// The agent the task belongs to.
    pub agent_id: String,
    /// The action within the task.
    pub action_id: String,
    /// The action's name, for people.
    pub name: String,
    /// OCI reference of the action.
    pub image: String,
    /// Seconds the action may take; 0 for no limit.
    pub timeout_secs: i64,
    /// Overrides the image's command.
    pub command: Vec<String>,
    /// Bind mounts of the container, `host:container[:options]`.
    pub volumes: Vec<String>,
    /// `KEY=value`, sorted by key. May hold secrets: never log it.
    pub environment: Vec<String>,
    /// PID namespace (`host` or empty), the older of the two spellings.
    pub pid: String,
    /// Linux namespaces to join.
    pub namespaces: Option<Namespaces>,
    /// Arguments with which the image is run once after it failed.
    pub on_failure: Vec<String>,
    /// Command to run after a timeout.
    pub on_timeout: Vec<String>,
}

/// Leaves out command and environment, which may hold secrets.
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

/// The namespaces an action runs in; empty means its own.
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
    /// Stopped by its time limit.
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

/// Report about an action. Workflow, task and action id are not empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// The reporting agent; a stock agent may leave it empty.
    pub agent_id: String,
    /// The task within the workflow.
    pub task_id: String,
    /// The action within the task.
    pub action_id: String,
    /// The action's name, for people.
    pub action_name: String,
    /// State of the action.
    pub state: ActionState,
    /// Start by the agent's clock; a stock agent's RUNNING report has none.
    pub start: Option<Timestamp>,
    /// End by the agent's clock.
    pub stop: Option<Timestamp>,
    /// Duration for people (`1m2s`).
    pub duration: String,
    /// Reason of the failure, or a constant from a stock agent. At most 4 KiB.
    pub message: String,
}

/// Beginning of a progress's message while the action waits for something that another server does
/// not give now; the reason follows.
pub const WAITING: &str = "waiting: ";

/// Lines that one progress may carry.
pub const OUTPUT_LINES: usize = 100;

/// Progress of a running action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Id of the reporting agent.
    pub agent_id: String,
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// The task within the workflow.
    pub task_id: String,
    /// The action within the task.
    pub action_id: String,
    /// Bytes dealt with so far.
    pub bytes_done: u64,
    /// Bytes in all; 0 while unknown.
    pub bytes_total: u64,
    /// Current step, for people.
    pub message: String,
    /// Output of the action since the last report: at most [`OUTPUT_LINES`] lines.
    pub output: Vec<String>,
}

/// A disk that a hint chose, before it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskChoice {
    /// Id of the reporting agent.
    pub agent_id: String,
    /// `namespace/name` of the workflow.
    pub workflow_id: String,
    /// The task within the workflow.
    pub task_id: String,
    /// The action within the task.
    pub action_id: String,
    /// The hint without a partition, such as `minSizeGigabytes=200,model=Samsung`.
    pub hint: String,
    /// `naa.…` or `eui.…`; empty where the disk has none.
    pub wwn: String,
    /// Serial number; empty where the disk has none.
    pub serial: String,
    /// Model name of the disk.
    pub model: String,
    /// Size of the disk in bytes.
    pub bytes: u64,
}

/// An agent's description of its machine.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentReport {
    /// Id by which the agent introduces itself.
    pub agent_id: String,
    /// Attributes as Tinkerbell defines them; an agent of ours sends them once a boot.
    pub attributes: Option<Attributes>,
    /// Inventory as this protocol defines it.
    pub inventory: Option<Inventory>,
}

/// An agent's first words after its machine booted.
#[derive(Debug, Clone, PartialEq)]
pub struct Hello {
    /// Id of the agent.
    pub agent_id: String,
    /// Version of the agent.
    pub agent_version: String,
    /// The kernel's random boot id.
    pub boot_id: String,
    /// The machine as its agent sees it.
    pub attributes: Option<Attributes>,
    /// Inventory of the machine, from a Tinbox agent. At most 64 KiB.
    pub inventory: Option<Inventory>,
}

/// Reason why a call is refused; each maps to one gRPC code, as in Tinkerbell's server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// NOT_FOUND: no workflow, no task, or no action left for this agent.
    #[error("{0}")]
    NotFound(String),
    /// FAILED_PRECONDITION: the workflow is not ready to be run, or no longer.
    #[error("{0}")]
    Precondition(String),
    /// INVALID_ARGUMENT: the request cannot be meant.
    #[error("{0}")]
    InvalidArgument(String),
    /// UNAUTHENTICATED: the token is not this agent's.
    #[error("{0}")]
    Unauthenticated(String),
    /// UNAVAILABLE: ask again later.
    #[error("{0}")]
    Unavailable(String),
    /// INTERNAL: the box failed.
    #[error("{0}")]
    Internal(String),
}

impl Refusal {
    /// True if a retry cannot help.
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::InvalidArgument(_) | Self::Precondition(_))
    }
}
