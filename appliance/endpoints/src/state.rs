//! State of an endpoint, in the words of its status.

use api::network::control_plane_endpoint::ControlPlaneEndpointStatus;
use stdx::MacAddr;

/// State of the address and the port of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The box checks by ARP if another machine uses the address.
    Probing,
    /// No network of the box contains the address.
    NotInNetwork,
    /// The box already has the maximum number of endpoints.
    TooMany,
    /// Another machine answers for the address.
    InUse(MacAddr),
    /// The address or port cannot be used; the text has the causes.
    Failed(String),
    /// The box has the address and forwards connections.
    Forwarding {
        /// Interface with the address.
        interface: String,
        /// Number of machines that get connections.
        healthy: usize,
        /// Number of all machines.
        total: usize,
    },
}

impl State {
    /// Returns the status of the ControlPlaneEndpoint. The spelling of a reason never changes.
    pub fn status(&self, address: &str) -> ControlPlaneEndpointStatus {
        let (reason, message) = match self {
            Self::Probing => ("Probing", format!("checking that no machine uses {address}")),
            Self::NotInNetwork => (
                "NotInNetwork",
                format!("{address} is not an address for machines in a Network of the box"),
            ),
            Self::TooMany => {
                ("TooManyEndpoints", "the box has the maximum number of endpoints".to_owned())
            }
            Self::InUse(mac) => (
                "AddressInUse",
                format!("the machine {mac} answers for {address}, so the box does not use it"),
            ),
            Self::Failed(why) => ("AddressFailed", why.clone()),
            Self::Forwarding { total: 0, .. } => {
                ("NoMachine", "no machine of the control plane has an address yet".to_owned())
            }
            Self::Forwarding { healthy: 0, total, .. } => (
                "NoHealthyMachine",
                format!("none of {total} machines of the control plane accepts connections"),
            ),
            Self::Forwarding { healthy, total, .. } => (
                "Forwarding",
                format!("{healthy} of {total} machines of the control plane are healthy"),
            ),
        };
        let (interface, healthy, total) = match self {
            Self::Forwarding { interface, healthy, total } => (interface.clone(), *healthy, *total),
            _ => (String::new(), 0, 0),
        };
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        ControlPlaneEndpointStatus {
            held: !interface.is_empty(),
            interface,
            reason: reason.to_owned(),
            message,
            healthy: count(healthy),
            total: count(total),
        }
    }
}
