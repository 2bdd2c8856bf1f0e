//! Kinds of the Cluster API infrastructure provider: v1beta1 of CAPT (Cluster API Provider
//! Tinkerbell) with optional fields of Tinbox, and the CustomResourceDefinitions, which also have
//! the v1alpha4 of the box's own API.
//!
//! The types of specs cannot be serialized, because they lack fields of other versions: controllers
//! change a spec only by a patch. A status is written whole, with the fields that its type lacks.

mod cluster;
pub mod cluster_api;
mod failure_domains;
mod machine;
mod remediation;
mod template;

use serde::{Deserialize, Serialize};

use crate::meta::Resource;

pub use cluster::{
    Endpoint, EndpointProvider, TemplateRef, TinkerbellCluster, TinkerbellClusterSpec,
    TinkerbellClusterStatus,
};
pub use failure_domains::{Contract, FailureDomain, FailureDomains, NamedFailureDomain};
pub use machine::{
    Affinity, AffinityTerm, HardwareSelector, MachineAddress, MachineBootOptions,
    TinkerbellMachine, TinkerbellMachineSpec, TinkerbellMachineStatus, UnknownWipeMethod,
    UserDataSecret, WeightedTerm, WipeMethod,
};
pub use remediation::{
    TinkerbellRemediation, TinkerbellRemediationSpec, TinkerbellRemediationStatus,
};
pub use template::{
    BoxHardware, ClusterTemplate, MachineTemplate, NodeInfo, TemplateMeta,
    TinkerbellClusterTemplate, TinkerbellClusterTemplateSpec, TinkerbellMachineTemplate,
    TinkerbellMachineTemplateSpec, TinkerbellMachineTemplateStatus,
};

/// CustomResourceDefinition of the kind TinkerbellCluster.
pub const CLUSTERS: &str = include_str!("infrastructure/tinkerbellclusters.json");
/// CustomResourceDefinition of the kind TinkerbellClusterTemplate.
pub const CLUSTER_TEMPLATES: &str = include_str!("infrastructure/tinkerbellclustertemplates.json");
/// CustomResourceDefinition of the kind TinkerbellMachine.
pub const MACHINES: &str = include_str!("infrastructure/tinkerbellmachines.json");
/// CustomResourceDefinition of the kind TinkerbellMachineTemplate.
pub const MACHINE_TEMPLATES: &str = include_str!("infrastructure/tinkerbellmachinetemplates.json");

/// CustomResourceDefinition of the kind TinkerbellRemediation.
pub const REMEDIATIONS: &str =
    include_str!("infrastructure/remediation/tinkerbellremediations.json");
/// CustomResourceDefinition of the kind TinkerbellRemediationTemplate.
pub const REMEDIATION_TEMPLATES: &str =
    include_str!("infrastructure/remediation/tinkerbellremediationtemplates.json");

/// Resource of the kind TinkerbellCluster.
pub const TINKERBELL_CLUSTER: Resource = resource("TinkerbellCluster", "tinkerbellclusters");
/// Resource of the kind TinkerbellClusterTemplate.
pub const TINKERBELL_CLUSTER_TEMPLATE: Resource =
    resource("TinkerbellClusterTemplate", "tinkerbellclustertemplates");
/// Resource of the kind TinkerbellMachine.
pub const TINKERBELL_MACHINE: Resource = resource("TinkerbellMachine", "tinkerbellmachines");
/// Resource of the kind TinkerbellMachineTemplate.
pub const TINKERBELL_MACHINE_TEMPLATE: Resource =
    resource("TinkerbellMachineTemplate", "tinkerbellmachinetemplates");
/// Resource of the kind TinkerbellRemediation, which only management clusters have.
pub const TINKERBELL_REMEDIATION: Resource =
    resource("TinkerbellRemediation", "tinkerbellremediations");

/// Label of a Hardware with the name of the TinkerbellMachine that owns it.
pub const OWNER_NAME: &str = "v1alpha1.tinkerbell.org/ownerName";
/// Label of a Hardware with the namespace of the TinkerbellMachine that owns it.
pub const OWNER_NAMESPACE: &str = "v1alpha1.tinkerbell.org/ownerNamespace";
/// Annotation of a Hardware whose machine was provisioned for a Machine of Cluster API, as in CAPT.
pub const PROVISIONED: &str = "v1alpha1.tinkerbell.org/provisioned";
/// Label with the name of the TinkerbellMachine for which an object was made, as in CAPT.
pub const MACHINE_NAME: &str = "capt.tinkerbell.org/machine-name";
/// Label with the namespace of the TinkerbellMachine for which an object was made, as in CAPT.
pub const MACHINE_NAMESPACE: &str = "capt.tinkerbell.org/machine-namespace";
/// Label with the unique ID of the management cluster that has the TinkerbellMachine.
pub const CLUSTER_UID: &str = "tinbox.dev/management-cluster-uid";
/// Annotation of a Hardware with the name of the management cluster that owns the Hardware, for
/// people. The label with the unique ID decides.
pub const MANAGEMENT_CLUSTER_NAME: &str = "tinbox.dev/management-cluster";
/// Label of a Hardware with its failure domain, such as a rack. Without the label, the failure
/// domain is the name of the box.
pub const FAILURE_DOMAIN: &str = "topology.tinbox.dev/failure-domain";
/// Annotation of a Hardware with the time (RFC 3339) at which its last owner released it.
pub const RELEASED_AT: &str = "tinbox.dev/released-at";

const fn resource(kind: &'static str, plural: &'static str) -> Resource {
    Resource { group: "infrastructure.cluster.x-k8s.io", version: "v1beta1", kind, plural }
}

/// Progress that Cluster API reads in contract v1beta2.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Initialization {
    /// True after the infrastructure was provisioned. Never changes back to false.
    pub provisioned: bool,
}

#[cfg(test)]
mod tests;
