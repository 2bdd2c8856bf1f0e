//! Liveness of agents, as the rules of a Workflow see it.

use std::time::Duration;

use crate::meta::ObjectKey;

/// The last message of an agent, in moments of the steady clock ([`stdx::Clock::steady`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Moment of the last message; `None` where none is recorded.
    pub heard: Option<Duration>,
    /// An agent without a record may have been heard up to this moment, and not since: the start of
    /// the box, or the last message of the newest record that was dropped for want of room.
    pub listening_since: Duration,
    /// It says so every few seconds while an action runs, so that silence means it is gone.
    pub beats: bool,
    /// Moment of the last message of any agent.
    pub any_heard: Duration,
    /// Workflows of which an action runs, of all agents.
    pub at_work: usize,
}

/// Agents, and the last message of each. Kept in memory: after a restart of the box every agent is
/// given fresh time.
pub trait Agents: Send + Sync + 'static {
    /// The last sign of life of an agent.
    fn life(&self, agent_id: &str) -> Life;
    /// The Workflows of a machine, ended or not, each that a reconciler was ever woken for among
    /// them; `None` where that is not known (yet), and has to be looked up.
    fn workflows_of(&self, hardware: &ObjectKey) -> Option<Vec<ObjectKey>>;
}
