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
            Self::HardwareAddress { .. } | Self::BoxAddress { .. } => "EndpointConflict",
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
        matches!(self, Self::HardwareAddress { .. } | Self::BoxAddress { .. })
    }

    /// Returns true if `message` reports a conflict of the endpoint on the box `box_name`.
    pub fn is_conflict_of(message: &str, box_name: &str) -> bool {
        message.contains(&format!("{};", of_box(box_name)))
    }
}

impl Hint for ClusterError {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::ClusterMissing => {
                "create a Cluster whose spec.infrastructureRef names the TinkerbellCluster"
            }
            Self::TemplateOverrideConflict => "remove one of the two",
            Self::EndpointMissing => {
                "set spec.controlPlaneEndpoint.host of the TinkerbellCluster or of its Cluster to \
                 the virtual address of the control plane"
            }
            Self::HardwareAddress { .. } | Self::BoxAddress { .. } => {
                "set spec.controlPlaneEndpoint.host to an unused address, which the control plane \
                 takes over"
            }
        })
    }
}
