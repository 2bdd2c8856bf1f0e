//! Kinds Cluster and Machine of Cluster API (`cluster.x-k8s.io`), as far as an infrastructure
//! provider reads them. The types accept v1beta1 and v1beta2, and cannot be serialized.

use serde::Deserialize;

use super::{Contract, Endpoint};
use crate::meta::{Object, ObjectMeta, Resource};

/// Resource of the kind Cluster, in the version that every release up to v1.15 serves.
pub const CLUSTER: Resource = resource("v1beta1", "Cluster", "clusters");
/// Resource of the kind Cluster in v1beta2, from release v1.11.
pub const CLUSTER_V1BETA2: Resource = resource("v1beta2", "Cluster", "clusters");
/// Resource of the kind Machine, in the version that every release up to v1.15 serves.
pub const MACHINE: Resource = resource("v1beta1", "Machine", "machines");
/// Resource of the kind Machine in v1beta2, from release v1.11.
pub const MACHINE_V1BETA2: Resource = resource("v1beta2", "Machine", "machines");

/// Label of an object with the name of its Cluster.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// Label of a machine of the control plane and of its infrastructure object, with any value.
pub const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
/// Annotation of an object that controllers must not change; the value does not matter.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";
/// Annotation of an object with the name of the template from which Cluster API made the object.
pub const CLONED_FROM_NAME: &str = "cluster.x-k8s.io/cloned-from-name";
/// Annotation of an object with kind and group of this template, as `Kind.group`.
pub const CLONED_FROM_KIND: &str = "cluster.x-k8s.io/cloned-from-groupkind";
/// Annotation of a template in a dry run of the topology controller, which compares templates that
/// it never writes.
pub const TOPOLOGY_DRY_RUN: &str = "topology.cluster.x-k8s.io/dry-run";
/// Label with which an object selects its controllers among several.
pub const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
/// Annotation of an object that `clusterctl move` deletes after the copy to another management
/// cluster. The infrastructure of the object continues to exist.
pub const DELETE_FOR_MOVE: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";

const fn resource(version: &'static str, kind: &'static str, plural: &'static str) -> Resource {
    Resource { group: "cluster.x-k8s.io", version, kind, plural }
}

/// Kubernetes cluster that Cluster API manages.
pub type Cluster = Object<ClusterSpec, ClusterStatus>;
/// Machine of a Kubernetes cluster.
pub type Machine = Object<MachineSpec, MachineStatus>;

/// Spec of a Cluster.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// True if controllers must not change the objects of the cluster.
    pub paused: Option<bool>,
    /// Host and port of the control plane.
    pub control_plane_endpoint: Option<Endpoint>,
    /// Infrastructure object of the cluster.
    pub infrastructure_ref: Option<ProviderRef>,
}

/// Status of a Cluster.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// True after the infrastructure was provisioned (v1beta1).
    pub infrastructure_ready: bool,
    /// Progress of the infrastructure, in v1beta2.
    pub initialization: Option<CoreInitialization>,
}

/// Progress of a Cluster or Machine in v1beta2.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CoreInitialization {
    /// True after the infrastructure was provisioned.
    pub infrastructure_provisioned: Option<bool>,
}

/// Spec of a Machine.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSpec {
    /// Name of the machine's Cluster, in the same namespace.
    pub cluster_name: String,
    /// Kubernetes version to install, such as `v1.34.1`.
    pub version: Option<String>,
    /// Bootstrap data that makes the machine a node.
    pub bootstrap: Bootstrap,
    /// Infrastructure object of the machine.
    pub infrastructure_ref: Option<ProviderRef>,
    /// Failure domain of the machine.
    pub failure_domain: Option<String>,
    /// Provider ID of the node, copied from the infrastructure object.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
}

/// Status of a Machine.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineStatus {
    /// True after the infrastructure was provisioned (v1beta1).
    pub infrastructure_ready: bool,
    /// Progress of the infrastructure, in v1beta2.
    pub initialization: Option<CoreInitialization>,
}

/// Bootstrap data of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bootstrap {
    /// Secret in the same namespace with the bootstrap data; `None` before the data exists.
    pub data_secret_name: Option<String>,
}

/// Reference to an object of a provider: `apiVersion` in v1beta1, `apiGroup` in v1beta2.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderRef {
    /// API version of the object as `group/version`; empty in v1beta2.
    pub api_version: String,
    /// API group of the object; empty in v1beta1.
    pub api_group: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; empty in v1beta2, which means that of the referring object.
    pub namespace: String,
}

impl Contract {
    /// Returns the resource of the kind Cluster in the version of the contract.
    pub fn cluster(self) -> Resource {
        match self {
            Self::V1beta1 => CLUSTER,
            Self::V1beta2 => CLUSTER_V1BETA2,
        }
    }

    /// Returns the resource of the kind Machine in the version of the contract.
    pub fn machine(self) -> Resource {
        match self {
            Self::V1beta1 => MACHINE,
            Self::V1beta2 => MACHINE_V1BETA2,
        }
    }
}

impl ProviderRef {
    /// Returns the API group of the object, from `apiGroup` or `apiVersion`.
    pub fn group(&self) -> &str {
        match self.api_group.as_str() {
            "" => self.api_version.split_once('/').map_or("", |(group, _)| group),
            group => group,
        }
    }

    /// Returns true if an object in `namespace` with this reference refers to the object
    /// `metadata` of kind `resource`, in any version.
    pub fn refers_to(&self, namespace: &str, resource: Resource, metadata: &ObjectMeta) -> bool {
        let own = if self.namespace.is_empty() { namespace } else { &self.namespace };
        self.group() == resource.group
            && self.kind == resource.kind
            && self.name == metadata.name
            && own == metadata.namespace
    }
}

impl ClusterSpec {
    /// Returns true if controllers must not change the object `metadata` of the cluster: the
    /// cluster or the object is paused.
    pub fn pauses(&self, metadata: &ObjectMeta) -> bool {
        self.paused == Some(true) || metadata.annotations.contains_key(PAUSED)
    }
}

impl ClusterStatus {
    /// Returns true if the infrastructure is provisioned, in either version.
    pub fn has_infrastructure(&self) -> bool {
        self.infrastructure_ready || is_provisioned(self.initialization.as_ref())
    }
}

impl MachineStatus {
    /// Returns true if the infrastructure is provisioned, in either version.
    pub fn has_infrastructure(&self) -> bool {
        self.infrastructure_ready || is_provisioned(self.initialization.as_ref())
    }
}

fn is_provisioned(initialization: Option<&CoreInitialization>) -> bool {
    initialization.is_some_and(|it| it.infrastructure_provisioned == Some(true))
}
