//! Messages as checked values, and the interface that the box implements.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;

use crate::worker::{ActionList, NamedReport, Turn};
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

/// A boxed future: [`Workflows`] is used behind `dyn`.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The box's handlers of agent calls. Every value is checked and bounded before it arrives.
pub trait Workflows: Send + Sync + 'static {
    /// Action that this agent must run now, or as soon as there is one within `patience`, which is
    /// zero for a stock agent: it asks again within two seconds.
    fn next<'a>(
        &'a self,
        agent_id: &'a str,
        attributes: Option<Attributes>,
        patience: Duration,
    ) -> Pending<'a, Result<Assignment, Refusal>>;

    /// Record a report; `Ok` only once it is durable.
    fn report(&self, report: Report) -> Pending<'_, Result<(), Refusal>>;

    /// Note how far an action has come; the answer is why it must be stopped, if it must.
    fn progress(&self, progress: Progress) -> Pending<'_, Option<String>>;

    /// Action that an older worker must run now in its workflow; `None` for none. The default of
    /// these three methods has nothing for older workers.
    fn turn<'a>(&'a self, _worker_id: &'a str) -> Pending<'a, Result<Option<Turn>, Refusal>> {
        Box::pin(async { Ok(None) })
    }

    /// All actions of a workflow, with their workers. The request does not name its sender: the
    /// list is returned only to a sender that may act for that worker.
    fn actions<'a>(&'a self, _workflow_id: &'a str) -> Pending<'a, Result<ActionList, Refusal>> {
        Box::pin(async { Err(Refusal::NotFound("older workers are not supported".to_owned())) })
    }

    /// Record a report of an older worker; `Ok` only once it is durable.
    fn named_report(&self, _report: NamedReport) -> Pending<'_, Result<(), Refusal>> {
        Box::pin(async { Err(Refusal::NotFound("older workers are not supported".to_owned())) })
    }

    /// Record which disk a hint chose; `Ok` only once it is durable. [`Refusal::Precondition`] when
    /// the workflow chose another disk by this hint before. A service without this records nothing.
    fn choose_disk(&self, _choice: DiskChoice) -> Pending<'_, Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }

    /// Note that an agent has booted. Must not block.
    fn hello(&self, hello: Hello, peer: Option<SocketAddr>);

    /// Decides whether this caller may make this call for this agent; called before every other but
    /// [`Workflows::actions`], and before that is answered. Must not block.
    fn authenticate(&self, agent_id: &str, caller: &Credentials<'_>) -> Result<(), Refusal>;
}

/// Proof of a call's sender. Without `Debug`, for the token is a secret.
#[derive(Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// Token of the `authorization: Bearer` metadata.
    pub token: Option<&'a str>,
    /// Boot of the machine, which agents of this release show with every call.
    pub boot: Option<&'a str>,
    /// Address of the sender.
    pub peer: Option<SocketAddr>,
    /// Agent call with its metadata.
    pub call: Call<'a>,
}

/// A call, as far as it matters to who may make it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Call<'a> {
    /// A request for the next action.
    #[default]
    Next,
    /// The first message of an agent, which names its boot.
    Hello(&'a str),
    /// A message about the workflow `namespace/name`.
    Workflow(&'a str),
}
