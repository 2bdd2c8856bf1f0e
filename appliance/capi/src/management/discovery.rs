//! Versions that a management cluster serves: Kubernetes, Cluster API and the provider's kinds.

use api::core::NAMESPACE;
use api::infrastructure::cluster_api::{CLUSTER, CLUSTER_V1BETA2, MACHINE, MACHINE_V1BETA2};
use api::infrastructure::{
    Contract, TINKERBELL_CLUSTER, TINKERBELL_MACHINE, TINKERBELL_MACHINE_TEMPLATE,
    TINKERBELL_REMEDIATION,
};
use api::meta::{ObjectKey, Resource};
use objects::{ObjectError, Objects as _};
use serde_json::Value;
use stdx::Hint as _;

use super::skew::{self, Skew};
use crate::components::{self, CLUSTER_ID_NAMESPACE};
use crate::remote::{Cause, RemoteObjects};

/// Kind CustomResourceDefinition, in the version that Cluster API needs.
const DEFINITION: Resource = Resource {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};
/// Kinds of the provider that the box watches.
const PROVIDER: [Resource; 3] =
    [TINKERBELL_CLUSTER, TINKERBELL_MACHINE, TINKERBELL_MACHINE_TEMPLATE];

/// Versions of a management cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    /// Unique ID of the management cluster: the UID of its namespace `kube-system`.
    pub cluster_uid: String,
    /// Kubernetes version, such as `v1.35.0`.
    pub version: String,
    /// Newest contract of Cluster API that is served.
    pub contract: Contract,
    /// True if requests of a MachineHealthCheck are served. The provider of an older release lacks
    /// the kind.
    pub has_remediation: bool,
    /// Difference between the provider's definitions there and here; `None` if the box has no right
    /// to read them.
    pub skew: Option<Skew>,
}

/// Reason why the objects of a management cluster cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiscoveryError {
    /// The management cluster cannot be read.
    Api(ObjectError),
    /// The box has no right to read the unique ID of the management cluster.
    NoRightToId(ObjectError),
    /// Cluster API is not installed.
    NoClusterApi,
    /// The provider is not installed.
    NoProvider,
    /// The provider's kinds are served in other versions only.
    OtherVersions(Vec<String>),
}

impl DiscoveryError {
    /// Returns true if the API was read and lacks a kind that the box needs.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Api(_) | Self::NoRightToId(_) => false,
            Self::NoClusterApi | Self::NoProvider | Self::OtherVersions(_) => true,
        }
    }
}

impl From<ObjectError> for DiscoveryError {
    fn from(error: ObjectError) -> Self {
        Self::Api(error)
    }
}

impl Discovery {
    /// Returns true if watchers and work of `other` need not be started again.
    pub fn is_same_work(&self, other: &Self) -> bool {
        self.cluster_uid == other.cluster_uid && self.kinds() == other.kinds()
    }

    /// Returns the kinds to watch.
    pub fn kinds(&self) -> Vec<Resource> {
        let core = match self.contract {
            Contract::V1beta1 => [CLUSTER, MACHINE],
            Contract::V1beta2 => [CLUSTER_V1BETA2, MACHINE_V1BETA2],
        };
        let remediation = self.has_remediation.then_some(TINKERBELL_REMEDIATION);
        PROVIDER.into_iter().chain(core).chain(remediation).collect()
    }
}

/// Reads the versions that a management cluster serves.
///
/// # Errors
/// The API cannot be read, or lacks a kind that the box needs.
pub async fn discover(remote: &RemoteObjects) -> Result<Discovery, DiscoveryError> {
    let version = remote.document("/version").await?;
    let version = version["gitVersion"].as_str().unwrap_or("unknown").to_owned();
    let groups = remote.document("/apis").await?;
    let contract = contract(&groups).ok_or(DiscoveryError::NoClusterApi)?;
    let served = versions(&groups, TINKERBELL_MACHINE.group);
    if !served.contains(&TINKERBELL_MACHINE.version) {
        return Err(other_versions(remote, &served).await?);
    }
    let kinds = remote.document("/apis/infrastructure.cluster.x-k8s.io/v1beta1").await?;
    if !PROVIDER.iter().all(|kind| has_kind(&kinds, *kind)) {
        return Err(other_versions(remote, &served).await?);
    }
    let has_remediation = has_kind(&kinds, TINKERBELL_REMEDIATION);
    let cluster_uid = cluster_uid(remote).await?;
    let skew = skew(remote).await?;
    Ok(Discovery { cluster_uid, version, contract, has_remediation, skew })
}

/// Reads the unique ID of a management cluster.
///
/// # Errors
/// The namespace `kube-system` cannot be read.
pub async fn cluster_uid(remote: &RemoteObjects) -> Result<String, DiscoveryError> {
    let key = ObjectKey::new("", CLUSTER_ID_NAMESPACE);
    let namespace = match remote.get(NAMESPACE, &key).await {
        Ok(namespace) => namespace,
        Err(error) if Cause::of(error.hint()) == Cause::Rights => {
            return Err(DiscoveryError::NoRightToId(error));
        }
        Err(error) => return Err(error.into()),
    };
    match namespace["metadata"]["uid"].as_str() {
        Some(uid) if !uid.is_empty() => Ok(uid.to_owned()),
        _ => Err(ObjectError::Internal(format!("Namespace {key} has no metadata.uid")).into()),
    }
}

/// Returns the versions of a group, as far as an APIGroupList has them.
fn versions<'a>(groups: &'a Value, group: &str) -> Vec<&'a str> {
    let all = groups["groups"].as_array().into_iter().flatten();
    let found = all.filter(|it| it["name"] == group);
    let versions = found.flat_map(|it| it["versions"].as_array().into_iter().flatten());
    versions.filter_map(|version| version["version"].as_str()).collect()
}

fn contract(groups: &Value) -> Option<Contract> {
    let served = versions(groups, MACHINE.group);
    let has = |resource: Resource| served.contains(&resource.version);
    match (has(MACHINE_V1BETA2), has(MACHINE)) {
        (true, _) => Some(Contract::V1beta2),
        (false, true) => Some(Contract::V1beta1),
        (false, false) => None,
    }
}

fn has_kind(list: &Value, kind: Resource) -> bool {
    let kinds = list["resources"].as_array().into_iter().flatten();
    kinds.into_iter().any(|it| it["name"] == kind.plural)
}

/// Explains the absence of the provider's kinds: the group also has the kinds of other providers.
async fn other_versions(
    remote: &RemoteObjects,
    served: &[&str],
) -> Result<DiscoveryError, ObjectError> {
    let name = format!("{}.{}", TINKERBELL_MACHINE.plural, TINKERBELL_MACHINE.group);
    let definition = match remote.get(DEFINITION, &ObjectKey::new("", name)).await {
        Ok(definition) => definition,
        Err(ObjectError::NotFound(_)) => return Ok(DiscoveryError::NoProvider),
        Err(_) if served.is_empty() => return Ok(DiscoveryError::NoProvider),
        Err(error) => return Err(error),
    };
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    let names: Vec<String> =
        served.filter_map(|version| version["name"].as_str()).map(str::to_owned).collect();
    let has_own = names.iter().any(|name| name == TINKERBELL_MACHINE.version);
    // The definition is not yet or no longer served.
    Ok(if has_own { DiscoveryError::NoProvider } else { DiscoveryError::OtherVersions(names) })
}

/// Compares the provider's definitions there with those of this release.
async fn skew(remote: &RemoteObjects) -> Result<Option<Skew>, ObjectError> {
    let mut all = Skew::default();
    for own in components::definitions() {
        let name = own["metadata"]["name"].as_str().unwrap_or_default();
        match remote.get(DEFINITION, &ObjectKey::new("", name)).await {
            Ok(there) => all.add(skew::compare(&own, &there)),
            // The rights of a box for one namespace do not include the definitions.
            Err(error) if Cause::of(error.hint()) == Cause::Rights => return Ok(None),
            Err(ObjectError::NotFound(_)) => {
                let kind = own["spec"]["names"]["kind"].as_str().unwrap_or_default();
                all.missing.insert(kind.to_owned());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use api::infrastructure::Contract;
    use serde_json::{Value, json};

    use super::{Discovery, DiscoveryError, cluster_uid, contract, versions};
    use crate::remote::tests::{json_reply, remote, status};

    fn groups(core: &[&str]) -> Value {
        let versions: Vec<Value> = core.iter().map(|name| json!({ "version": name })).collect();
        json!({ "groups": [
            { "name": "apps", "versions": [{ "version": "v1" }] },
            { "name": "cluster.x-k8s.io", "versions": versions },
        ] })
    }

    #[test]
    fn the_newest_contract_that_is_served_is_used() {
        for (served, expected) in [
            (&["v1beta2", "v1beta1"][..], Some(Contract::V1beta2)),
            (&["v1beta2"], Some(Contract::V1beta2)),
            (&["v1beta1", "v1alpha4"], Some(Contract::V1beta1)),
            (&["v1alpha4"], None),
            (&[], None),
        ] {
            assert_eq!(contract(&groups(served)), expected, "{served:?}");
        }
        assert_eq!(contract(&json!({})), None);
        assert_eq!(versions(&groups(&[]), "apps"), ["v1"]);
    }

    #[tokio::test]
    async fn the_id_of_a_cluster_is_that_of_a_namespace_which_each_cluster_has() {
        let read = async |code: u16, body: Value| {
            let (remote, _events) = remote(move |sent| {
                assert_eq!(sent.target, "/api/v1/namespaces/kube-system");
                json_reply(code, &body)
            });
            cluster_uid(&remote).await
        };
        let namespace = |uid: &str| json!({ "metadata": { "name": "kube-system", "uid": uid } });
        assert_eq!(read(200, namespace("0b5e")).await, Ok("0b5e".to_owned()));
        assert!(matches!(read(200, namespace("")).await, Err(DiscoveryError::Api(_))));
        let forbidden = read(403, status(403, "Forbidden")).await;
        assert!(matches!(forbidden, Err(DiscoveryError::NoRightToId(_))));
    }

    #[test]
    fn the_kinds_of_cluster_api_have_the_version_of_the_contract() {
        for (contract, version) in [(Contract::V1beta1, "v1beta1"), (Contract::V1beta2, "v1beta2")]
        {
            let discovery = Discovery {
                cluster_uid: String::new(),
                version: String::new(),
                contract,
                has_remediation: contract == Contract::V1beta2,
                skew: None,
            };
            let kinds = discovery.kinds();
            assert_eq!(kinds.len(), if discovery.has_remediation { 6 } else { 5 });
            let core = kinds.iter().filter(|kind| kind.group == "cluster.x-k8s.io");
            assert!(core.into_iter().all(|kind| kind.version == version));
        }
    }
}
