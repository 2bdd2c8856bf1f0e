//! Reasons why the infrastructure of a cluster is not ready, each with a hint.

use api::meta::ObjectKey;
use stdx::Hint;

/// Reason why the infrastructure of a cluster is not ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// No Cluster owns the TinkerbellCluster.
    #[error("no Cluster has this TinkerbellCluster")]
    ClusterMissing,
    /// Both overrides of the template are set.
    #[error("spec.templateOverride and spec.templateOverrideRef are both set")]
    TemplateOverrideConflict,
    /// Neither object has the host of the control plane.
    #[error("the control plane has no endpoint")]
    EndpointMissing,
    /// The host of the control plane is the address of a machine.
    #[error("the endpoint {host} is an address of the Hardware {hardware}{}", of_box(.box_name))]
    HardwareAddress {
        /// Host of the endpoint.
        host: String,
        /// Key of the Hardware.
        hardware: ObjectKey,
        /// Name of the box that has the Hardware.
        box_name: String,
    },
    /// The host of the control plane is an address of the box.
    #[error("the endpoint {host} is an address of the box itself{}", of_box(.box_name))]
    BoxAddress {
        /// Host of the endpoint.
        host: String,
        /// Name of the box.
        box_name: String,
    },
    /// Another host answers for the endpoint before the control plane has a machine.
    #[error("a host with the MAC {mac} answers on {interface} for the endpoint {host}{}",
        of_box(.box_name))]
    LiveHost {
        /// Host of the endpoint.
        host: String,
        /// MAC of the other host.
        mac: String,
        /// Interface of the box.
        interface: String,
        /// Name of the box.
        box_name: String,
    },
    /// The box provides only IPv4 endpoints.
    #[error("the endpoint {host} is not an IPv4 address")]
    NotIpv4 {
        /// Host of the endpoint.
        host: String,
    },
    /// No network of the box contains the endpoint.
    #[error("the endpoint {host} is not in a Network of the box{}", of_box(.box_name))]
    NotServed {
        /// Host of the endpoint.
        host: String,
        /// Name of the box.
        box_name: String,
    },
    /// The box gives the address of the endpoint to DHCP clients.
    #[error("the endpoint {host} is in the DHCP pool of {interface}{}", of_box(.box_name))]
    PoolAddress {
        /// Host of the endpoint.
        host: String,
        /// Interface of the Network.
        interface: String,
        /// Name of the box.
        box_name: String,
    },
    /// The box provides the address to another cluster.
    #[error("the endpoint {host} is the endpoint of the cluster {cluster}{}", of_box(.box_name))]
    OtherCluster {
        /// Host of the endpoint.
        host: String,
        /// Key of the other TinkerbellCluster.
        cluster: ObjectKey,
        /// Name of the box.
        box_name: String,
    },
    /// The box has its own service on the port of the endpoint.
    #[error("the port {port} of the endpoint {host} is a port of the box itself{}",
        of_box(.box_name))]
    BoxPort {
        /// Host of the endpoint.
        host: String,
        /// Port of the endpoint.
        port: u16,
        /// Name of the box.
        box_name: String,
    },
    /// The box does not have the address of the endpoint, because another machine answers for it,
    /// or because the kernel refused the address.
    #[error("the box cannot take the endpoint: {why}{}", of_box(.box_name))]
    NotTaken {
        /// Message of the ControlPlaneEndpoint.
        why: String,
        /// Name of the box.
        box_name: String,
    },
    /// The box has not taken the address of the endpoint yet.
    #[error("the box takes the endpoint{}", of_box(.box_name))]
    EndpointPending {
        /// Name of the box.
        box_name: String,
    },
}

/// Returns the end of the text of a conflict on the box `box_name`.
fn of_box(box_name: &str) -> String {
    format!(" (box {box_name})")
}

impl ClusterError {
    /// Returns the reason for a condition; its spelling never changes.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::ClusterMissing => "WaitingForCluster",
            Self::TemplateOverrideConflict => "TemplateOverrideConflict",
            Self::EndpointMissing => "EndpointMissing",
            Self::NotIpv4 { .. } | Self::NotServed { .. } => "EndpointNotServed",
            Self::EndpointPending { .. } => "WaitingForEndpoint",
            Self::HardwareAddress { .. }
            | Self::BoxAddress { .. }
            | Self::PoolAddress { .. }
            | Self::BoxPort { .. }
            | Self::OtherCluster { .. }
            | Self::LiveHost { .. }
            | Self::NotTaken { .. } => "EndpointConflict",
        }
    }

    /// Returns the text for a condition, with the hint.
    pub fn message(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }

    /// Returns true if the endpoint conflicts with an address that only one box knows.
    pub fn is_conflict(&self) -> bool {
        self.reason() == "EndpointConflict" || matches!(self, Self::NotServed { .. })
    }

    /// Returns true if `message` reports a conflict of the endpoint on the box `box_name`.
    pub fn is_conflict_of(message: &str, box_name: &str) -> bool {
        message.contains(&format!("{};", of_box(box_name)))
    }
}

impl Hint for ClusterError {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::EndpointPending { .. } => return None,
            Self::ClusterMissing => {
                "create a Cluster whose spec.infrastructureRef names the TinkerbellCluster"
            }
            Self::TemplateOverrideConflict => "remove one of the two",
            Self::EndpointMissing => {
                "set spec.controlPlaneEndpoint.host of the TinkerbellCluster or of its Cluster to \
                 the virtual address of the control plane"
            }
            Self::NotIpv4 { .. } | Self::NotServed { .. } => {
                "set spec.controlPlaneEndpoint.host to an unused IPv4 address in a Network of a \
                 box, outside its DHCP pool"
            }
            Self::NotTaken { .. } | Self::LiveHost { .. } => {
                "set spec.controlPlaneEndpoint.host to an unused address, or switch off the \
                 machine that has it; the box tries again"
            }
            Self::OtherCluster { .. } => {
                "set spec.controlPlaneEndpoint.host to an unused address, or delete the \
                 ControlPlaneEndpoint of the box if the other cluster no longer exists"
            }
            Self::BoxPort { .. } => {
                "set spec.controlPlaneEndpoint.port to another port, such as 6443"
            }
            Self::PoolAddress { .. } => {
                "set spec.controlPlaneEndpoint.host to an unused address outside the DHCP pools"
            }
            Self::HardwareAddress { .. } | Self::BoxAddress { .. } => {
                "set spec.controlPlaneEndpoint.host to an unused address, which the control plane \
                 takes over"
            }
        })
    }
}
