//! Liveness of agents, as input to the rules of a Workflow.

use std::time::Duration;

use crate::meta::ObjectKey;

/// Liveness data of an agent. All times are monotonic ([`stdx::Clock::steady`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Time of the last message; `None` if no message is recorded.
    pub heard: Option<Duration>,
    /// Latest time at which an agent without a record may have sent a message: the start of the
    /// box, or the last message of the newest record that was dropped to limit memory.
    pub listening_since: Duration,
    /// True if the agent sends a heartbeat every few seconds while an action runs. The silence of
    /// such an agent means that its program or its machine has stopped.
    pub beats: bool,
    /// Time of the last message of any agent.
    pub any_heard: Duration,
    /// Number of Workflows with a running action, over all agents.
    pub at_work: usize,
}

/// Source of the liveness data of all agents. The data is in memory: after a restart of the box,
/// the timeout of every agent starts again.
pub trait Agents: Send + Sync + 'static {
    /// Returns the liveness data of the agent `agent_id`.
    fn life(&self, agent_id: &str) -> Life;
    /// Returns the Workflows of a machine, ended or not, including every Workflow that a reconciler
    /// was ever woken for. `None` means that the list is not loaded yet: the caller must read the
    /// store.
    fn workflows_of(&self, hardware: &ObjectKey) -> Option<Vec<ObjectKey>>;
}
