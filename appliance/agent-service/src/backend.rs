//! Interface of the service to the rest of the box.

use std::net::SocketAddr;

use agent_rpc::AgentReport;
use status::boot_event::BootEvent;

/// Boots in which a token is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    /// Only the boot whose boot script contained the token.
    OneBoot,
    /// Every boot, from one boot medium that contains the token.
    EveryBoot,
}

/// Machines of the box, for the service. No function here may block.
pub trait Backend: Send + Sync + 'static {
    /// True if the agent's machine has a Hardware.
    fn knows(&self, agent_id: &str) -> bool;

    /// True if an agent without a workflow may send its Hello.
    fn may_introduce_itself(&self, agent_id: &str) -> bool;

    /// True if the network shows that a request from `peer` comes from this agent's machine. For an
    /// unknown machine the agent id must be the MAC address of the sender.
    fn is_sender(&self, agent_id: &str, peer: Option<SocketAddr>) -> bool;

    /// Use of a token that the box issued to this agent for the workflow with this uid; `None` for
    /// any other token.
    fn verify(&self, token: &str, agent_id: &str, workflow_uid: &str) -> Option<TokenUse>;

    /// Environment of an action as it is sent to the agent, with the box's address in the URLs of
    /// cached files. A stock agent sends no boot id.
    fn environment(
        &self,
        agent_id: &str,
        is_stock: bool,
        image: &str,
        environment: Vec<String>,
    ) -> Vec<String>;

    /// Receives the facts that an agent reports about its machine; `is_repeat` is true for
    /// repeated reports.
    fn receive_report(&self, report: AgentReport, is_repeat: bool);

    /// Receives an event in the history of this agent's machine.
    fn record_event(&self, agent_id: &str, event: &BootEvent);

    /// Receives lines that an action of this agent printed.
    fn record_output(&self, agent_id: &str, lines: Vec<String>);
}
