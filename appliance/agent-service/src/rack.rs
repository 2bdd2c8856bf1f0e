//! What the service must know of the rest of the box, and what it tells it.

use std::net::SocketAddr;

use agent_rpc::AgentReport;
use status::boot_event::BootEvent;

/// Boots that may use a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    /// The one that the script with the token was for.
    OneBoot,
    /// Each, from one medium with the token.
    EveryBoot,
}

/// The machines as the box knows them. Nothing here may block.
pub trait Rack: Send + Sync + 'static {
    /// Whether there is a record of this agent's machine.
    fn knows(&self, agent_id: &str) -> bool;

    /// Whether an agent without a workflow may say who it is.
    fn may_introduce_itself(&self, agent_id: &str) -> bool;

    /// True if the network shows a request from `peer` to be of this agent's machine. Of an unknown
    /// machine only its MAC is known, and its agent goes by that.
    fn is_sender(&self, agent_id: &str, peer: Option<SocketAddr>) -> bool;

    /// Use of a token that the box gave this agent for this workflow (by its uid); `None` for any
    /// other token.
    fn verify(&self, token: &str, agent_id: &str, workflow_uid: &str) -> Option<TokenUse>;

    /// An action's environment as its agent is to be told of it: with the box's own address for
    /// what the box keeps. A stock agent says nothing of its boot.
    fn environment(
        &self,
        agent_id: &str,
        is_stock: bool,
        image: &str,
        environment: Vec<String>,
    ) -> Vec<String>;

    /// An agent said what its machine is; `again` when it goes on saying it.
    fn met(&self, told: AgentReport, again: bool);

    /// A moment of the story of this agent's machine.
    fn tell(&self, agent_id: &str, moment: &BootEvent);

    /// Lines that an action of this agent's printed.
    fn printed(&self, agent_id: &str, lines: Vec<String>);
}
