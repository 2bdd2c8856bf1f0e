//! Liveness of agents, as input to the rules of a Workflow.

use std::time::Duration;

use crate::meta::ObjectKey;

/// Liveness data of an agent. Times are those of the steady clock ([`stdx::Clock::steady`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Time of the last message; `None` if no message is recorded.
    pub heard: Option<Duration>,
    /// Latest possible time of a message from an agent without a record. This is the start of the
    /// box, or the last message of the newest record that was dropped to limit memory.
    pub listening_since: Duration,
    /// True if the agent sends a heartbeat every few seconds while an action runs. Silence of such
    /// an agent means that it is gone.
    pub beats: bool,
    /// Time of the last message of any agent.
    pub any_heard: Duration,
    /// Number of Workflows, of all agents, in which an action runs.
    pub at_work: usize,
}

/// Source of each agent's liveness data. The times are kept in memory: after a restart of the box,
/// the timeout of every agent starts again.
pub trait Agents: Send + Sync + 'static {
    /// Liveness data of the agent `agent_id`.
    fn life(&self, agent_id: &str) -> Life;
    /// Workflows of a machine, ended or not. Every Workflow that a reconciler was ever woken for is
    /// among them. `None` if the list is not known yet and the caller must look the Workflows up.
    fn workflows_of(&self, hardware: &ObjectKey) -> Option<Vec<ObjectKey>>;
}
