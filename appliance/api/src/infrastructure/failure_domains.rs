//! Failure domains of a cluster, in the shapes of both contracts of Cluster API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Contract between Cluster API and an infrastructure provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contract {
    /// Contract of Cluster API up to v1.10.
    V1beta1,
    /// Contract of Cluster API from v1.11. Its API also serves `cluster.x-k8s.io/v1beta2`.
    V1beta2,
}

/// Properties of one failure domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureDomain {
    /// True if the domain may contain machines of the control plane.
    pub control_plane: bool,
    /// Further properties, for people.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// Failure domain with its name, as in the list of contract v1beta2.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamedFailureDomain {
    /// Name, unique in the cluster.
    pub name: String,
    /// Properties of the domain.
    #[serde(flatten)]
    pub domain: FailureDomain,
}

/// Failure domains in the shape of one contract. The labels of the CustomResourceDefinition list
/// the contracts. Cluster API uses the newest that it knows, and reads only the shape of this one.
/// With the other shape, the cluster is never provisioned (cluster-api `internal/contract`, files
/// `version.go` and `infrastructure_cluster.go`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FailureDomains {
    /// Map from the name, for contract v1beta1.
    Map(BTreeMap<String, FailureDomain>),
    /// List in the order of the names, for contract v1beta2.
    List(Vec<NamedFailureDomain>),
    /// Value in neither shape: the schema accepts any value, because a schema allows only one type.
    Other(Value),
}

impl FailureDomains {
    /// Creates the value for `contract`.
    pub fn new(contract: Contract, domains: BTreeMap<String, FailureDomain>) -> Self {
        let named = |(name, domain)| NamedFailureDomain { name, domain };
        match contract {
            Contract::V1beta1 => Self::Map(domains),
            Contract::V1beta2 => Self::List(domains.into_iter().map(named).collect()),
        }
    }

    /// Returns the failure domains by name, from either shape; none from any other value.
    pub fn by_name(&self) -> BTreeMap<String, FailureDomain> {
        match self {
            Self::Map(domains) => domains.clone(),
            Self::List(domains) => {
                domains.iter().map(|it| (it.name.clone(), it.domain.clone())).collect()
            }
            Self::Other(_) => BTreeMap::new(),
        }
    }

    /// Returns true without any failure domain. The field is then not written.
    pub fn is_empty(&self) -> bool {
        self.by_name().is_empty()
    }
}

impl Default for FailureDomains {
    fn default() -> Self {
        Self::Map(BTreeMap::new())
    }
}
