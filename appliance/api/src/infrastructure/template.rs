//! Kinds TinkerbellMachineTemplate and TinkerbellClusterTemplate, which Cluster API clones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cluster_api::TOPOLOGY_DRY_RUN;
use super::{TinkerbellClusterSpec, TinkerbellMachineSpec};
use crate::meta::{Condition, Object};

/// Template of TinkerbellMachines, for a MachineDeployment or a control plane.
pub type TinkerbellMachineTemplate =
    Object<TinkerbellMachineTemplateSpec, TinkerbellMachineTemplateStatus>;
/// Template of TinkerbellClusters, for a ClusterClass. The kind has no status.
pub type TinkerbellClusterTemplate = Object<TinkerbellClusterTemplateSpec, Map<String, Value>>;

/// Spec of a TinkerbellMachineTemplate.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TinkerbellMachineTemplateSpec {
    /// Content of each machine.
    pub template: MachineTemplate,
}

impl TinkerbellMachineTemplateSpec {
    /// Returns the reason why the stored template `old` must not become `new`: Cluster API would
    /// leave the existing machines as they are. The topology controller of Cluster API compares
    /// templates by dry runs of such changes, and marks them (contract of infrastructure
    /// providers).
    pub fn refused(new: &Value, old: Option<&Value>) -> Option<&'static str> {
        let old = old?;
        let spec = |object: &Value| Self::deserialize(&object["spec"]);
        // A field with its default equals an absent field.
        let is_same = match (spec(new), spec(old)) {
            (Ok(new), Ok(old)) => new.template.spec == old.template.spec,
            _ => new["spec"]["template"]["spec"] == old["spec"]["template"]["spec"],
        };
        let is_dry_run = new["metadata"]["annotations"].get(TOPOLOGY_DRY_RUN).is_some();
        (!is_same && !is_dry_run).then_some(
            "cannot be changed, because existing machines would keep the former spec; make another \
             TinkerbellMachineTemplate, and name it in the infrastructureRef of the \
             MachineDeployment or of the control plane",
        )
    }
}

/// Content of the machines of a template.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MachineTemplate {
    /// Labels and annotations of each machine.
    pub metadata: TemplateMeta,
    /// Spec of each machine.
    pub spec: TinkerbellMachineSpec,
}

/// Spec of a TinkerbellClusterTemplate.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TinkerbellClusterTemplateSpec {
    /// Content of each cluster.
    pub template: ClusterTemplate,
}

/// Content of the clusters of a template.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClusterTemplate {
    /// Labels and annotations of each cluster.
    pub metadata: TemplateMeta,
    /// Spec of each cluster.
    pub spec: TinkerbellClusterSpec,
}

/// Labels and annotations of the objects of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TemplateMeta {
    /// Labels of each object.
    pub labels: BTreeMap<String, String>,
    /// Annotations of each object.
    pub annotations: BTreeMap<String, String>,
}

/// Tinbox extension: properties of the Hardware that machines of a template can use. The cluster
/// autoscaler reads them to scale up from zero machines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TinkerbellMachineTemplateStatus {
    /// Least amount of each resource (`cpu`, `memory`), as Kubernetes quantities.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, String>,
    /// Platform of the nodes; `None` if the Hardware differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeInfo>,
    /// Number of Hardware that match the template, with those in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matching_hardware: Option<u32>,
    /// Number of matching Hardware that a new machine can use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_hardware: Option<u32>,
    /// Hardware of each box that serves the template, by the names of the boxes. The other fields
    /// are computed from this list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<BoxHardware>,
    /// Conditions: `Ready`, which is `True` if some Hardware matches, and `MachinesUpToDate`, which
    /// is `False` if machines have another spec than the template.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Other fields, which the box writes unchanged.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Hardware of one box that machines of a template can use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BoxHardware {
    /// Name of the box.
    pub name: String,
    /// Number of Hardware that match the template, with those in use.
    pub matching_hardware: u32,
    /// Number of matching Hardware that a new machine can use.
    pub free_hardware: u32,
    /// Least amount of each resource (`cpu`, `memory`), as Kubernetes quantities.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, String>,
    /// Platform of the nodes; `None` if the Hardware differs, or none matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeInfo>,
    /// Reason why no Hardware matches; empty if some match.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Other fields, which a box writes unchanged.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Platform of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeInfo {
    /// CPU architecture: `amd64`, `arm64`, `s390x` or `ppc64le`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// Operating system, such as `linux`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operating_system: String,
}
