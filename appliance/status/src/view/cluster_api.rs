//! Management clusters of Cluster API, and the machines that the box provisions for them.

pub mod commands;

use serde::{Deserialize, Serialize};

use super::Text;

/// Management clusters and their machines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterApi {
    /// Management clusters, by name.
    pub clusters: Vec<PairedCluster>,
    /// Machines, those without Hardware first.
    pub machines: Vec<ClusterMachine>,
    /// Number of machines that are not in `machines`, because there are too many.
    pub more_machines: usize,
}

/// Management cluster of the box.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PairedCluster {
    /// Namespace and name of the ManagementCluster; only its name in the namespace `default`.
    pub name: Text,
    /// True if the box watches the management cluster.
    pub connected: bool,
    /// Reason of the condition `Connected`: `Connected`, `Unreachable`.
    pub state: Text,
    /// Message of the condition `Connected`; may be empty.
    pub message: Text,
    /// URL of the API server; empty if unknown.
    pub server: Text,
    /// Kubernetes version; empty if unknown.
    pub version: Text,
}

/// TinkerbellMachine of a management cluster, or of the box's own API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterMachine {
    /// Name of the management cluster; empty for the box's own API.
    pub cluster: Text,
    /// Namespace and name of the TinkerbellMachine.
    pub name: Text,
    /// Name of the Hardware; empty if the machine has none.
    pub hardware: Text,
    /// True if the machine is ready.
    pub ready: bool,
    /// Reason of the condition `Ready`; empty if the box has not seen the machine yet.
    pub state: Text,
    /// Message of the condition `HardwareClaimed`: why a Hardware was or was not chosen. Longer
    /// than a [`Text`], and without control characters.
    pub choice: String,
}
