//! Group `tinbox.dev/v1alpha1`: kind ManagementCluster, a management cluster of Cluster API whose
//! objects the box serves.
//!
//! The deletion of a ManagementCluster ends the connection. No machine is changed by it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::infrastructure::Contract;
use crate::meta::{Condition, Object, Resource};

/// Resource of the kind ManagementCluster.
pub const MANAGEMENT_CLUSTER: Resource = Resource {
    group: "tinbox.dev",
    version: "v1alpha1",
    kind: "ManagementCluster",
    plural: "managementclusters",
};

/// Definition of the kind ManagementCluster, as JSON of its CustomResourceDefinition.
pub const MANAGEMENT_CLUSTERS: &str = include_str!("management_cluster/managementclusters.json");

/// Key of the kubeconfig in its Secret, as in the Secrets `NAME-kubeconfig` of Cluster API.
pub const KUBECONFIG_KEY: &str = "value";
/// Type of the condition that tells if the box watches the management cluster.
pub const CONNECTED: &str = "Connected";
/// Type of the condition that tells if this device is the one of the box that serves the management
/// cluster.
pub const ACTIVE: &str = "Active";
/// Type of the condition that is true if the clocks of box and management cluster differ.
pub const CLOCK_SKEW: &str = "ClockSkew";
/// Type of the condition that is true if the management cluster has the provider's definitions of
/// another release.
pub const VERSION_SKEW: &str = "ProviderVersionSkew";

/// Management cluster of Cluster API.
pub type ManagementCluster = Object<ManagementClusterSpec, ManagementClusterStatus>;

/// Credential and scope of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagementClusterSpec {
    /// Secret with the kubeconfig.
    pub kubeconfig_secret_ref: SecretName,
    /// Only namespace of the management cluster to serve. `None` for all namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Value of the label `cluster.x-k8s.io/watch-filter` of the objects to serve. `None` for all
    /// objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch_filter: Option<String>,
    /// True to end the connection until the field is false again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// Device in `status.activeDevice` that this device replaces, once it is silent. Both devices
    /// have the backup of one box.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take_over_from: Option<String>,
}

/// Reference to a Secret in the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretName {
    /// Name of the Secret.
    pub name: String,
}

/// State of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagementClusterStatus {
    /// Unique ID of the management cluster: the UID of its namespace `kube-system`. Written once;
    /// a kubeconfig that leads to another cluster is not used.
    #[serde(rename = "clusterUID", skip_serializing_if = "Option::is_none")]
    pub cluster_uid: Option<String>,
    /// Conditions [`CONNECTED`], [`ACTIVE`], [`CLOCK_SKEW`] and [`VERSION_SKEW`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// URL of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Kubernetes version of the API server, such as `v1.35.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Newest contract of Cluster API that the management cluster serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
    /// Time of the last successful request, updated every few minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_contact: Option<Timestamp>,
    /// Time at which the token of the kubeconfig expires. The box renews the token earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_expires: Option<Timestamp>,
    /// Other device of the box that serves the management cluster: the holder of the box's Lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_device: Option<String>,
}

impl ManagementClusterStatus {
    /// Returns the condition [`CONNECTED`].
    pub fn connected(&self) -> Option<&Condition> {
        self.condition(CONNECTED)
    }

    /// Returns the condition [`ACTIVE`].
    pub fn active(&self) -> Option<&Condition> {
        self.condition(ACTIVE)
    }

    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MANAGEMENT_CLUSTER, MANAGEMENT_CLUSTERS, ManagementCluster};

    fn full() -> Value {
        json!({
            "apiVersion": "tinbox.dev/v1alpha1",
            "kind": "ManagementCluster",
            "metadata": { "name": "fleet", "namespace": "default" },
            "spec": {
                "kubeconfigSecretRef": { "name": "fleet-kubeconfig" },
                "namespace": "rack-1",
                "watchFilter": "rack-1",
                "suspend": true,
                "takeOverFrom": "cellar_0f1e2d3c",
            },
            "status": {
                "clusterUID": "0b5e1c3a-4a55-4c27-9d1b-0c6f0f3a5d11",
                "conditions": [{
                    "type": "Connected", "status": "True", "reason": "Connected",
                    "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
                "server": "https://fleet.example:6443",
                "version": "v1.35.0",
                "contract": "v1beta2",
                "lastContact": "2026-01-01T00:00:00Z",
                "credentialExpires": "2026-02-01T00:00:00Z",
                "activeDevice": "cellar_0f1e2d3c",
            },
        })
    }

    #[test]
    fn an_object_is_read_and_written_without_loss() {
        let object: ManagementCluster = serde_json::from_value(full()).unwrap();
        assert_eq!(object.status.connected().unwrap().status, "True");
        assert_eq!(serde_json::to_value(&object).unwrap(), full());
        let least = json!({ "spec": { "kubeconfigSecretRef": { "name": "a" } } });
        let object: ManagementCluster = serde_json::from_value(least.clone()).unwrap();
        assert_eq!(serde_json::to_value(&object.spec).unwrap(), least["spec"]);
        assert_eq!(serde_json::to_value(&object.status).unwrap(), json!({}));
    }

    #[test]
    fn the_definition_has_the_fields_of_the_type() {
        let definition: Value = serde_json::from_str(MANAGEMENT_CLUSTERS).unwrap();
        let (spec, version) = (&definition["spec"], &definition["spec"]["versions"][0]);
        assert_eq!(definition["metadata"]["name"], "managementclusters.tinbox.dev");
        assert_eq!(spec["group"], MANAGEMENT_CLUSTER.group);
        assert_eq!(spec["names"]["kind"], MANAGEMENT_CLUSTER.kind);
        assert_eq!(spec["names"]["plural"], MANAGEMENT_CLUSTER.plural);
        assert_eq!(version["name"], MANAGEMENT_CLUSTER.version);
        let properties = &version["schema"]["openAPIV3Schema"]["properties"];
        let names = |value: &Value| -> Vec<String> {
            let mut names: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
            names.sort();
            names
        };
        for part in ["spec", "status"] {
            assert_eq!(names(&properties[part]["properties"]), names(&full()[part]));
        }
    }
}
