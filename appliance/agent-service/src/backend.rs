//! Interface of the service to the rest of the box.

use std::net::SocketAddr;

use agent_rpc::AgentReport;
use status::boot_event::BootEvent;

/// Boots in which a boot token is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    /// Only the boot whose iPXE script contained the token.
    OneBoot,
    /// Every boot from the boot medium that contains the token.
    EveryBoot,
}

/// Access of the service to the machines of the box. No method may block.
pub trait Backend: Send + Sync + 'static {
    /// Returns true if the agent's machine has a Hardware.
    fn knows(&self, agent_id: &str) -> bool;

    /// Returns true if an agent without a workflow may send its Hello, to register its machine.
    fn may_introduce_itself(&self, agent_id: &str) -> bool;

    /// Returns true if the network shows that a request from `peer` comes from the agent's machine.
    /// The agent ID of an unknown machine must be the MAC address of the sender.
    fn is_sender(&self, agent_id: &str, peer: Option<SocketAddr>) -> bool;

    /// Checks a boot token. Returns the use of the token if the box issued it to this agent for the
    /// workflow with this UID, otherwise `None`.
    fn verify(&self, token: &str, agent_id: &str, workflow_uid: &str) -> Option<TokenUse>;

    /// Returns the environment to send to the agent for an action. URLs of cached files get the
    /// box's address. `is_stock` is true for an agent of upstream.
    fn environment(
        &self,
        agent_id: &str,
        is_stock: bool,
        image: &str,
        environment: Vec<String>,
    ) -> Vec<String>;

    /// Receives the data that an agent reports about its machine. `is_repeat` is true if the agent
    /// sends the same report repeatedly.
    fn receive_report(&self, report: AgentReport, is_repeat: bool);

    /// Receives an event for the history of the agent's machine.
    fn record_event(&self, agent_id: &str, event: &BootEvent);

    /// Receives output lines of an action.
    fn record_output(&self, agent_id: &str, lines: Vec<String>);
}
