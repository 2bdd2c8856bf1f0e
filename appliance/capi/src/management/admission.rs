//! Admission of a management cluster to the box: each ManagementCluster serves one cluster, and
//! each cluster has one ManagementCluster, because Hardware belongs to a cluster and not to a name.

use api::management_cluster::{MANAGEMENT_CLUSTER, ManagementCluster};
use api::meta::ObjectKey;
use objects::{ObjectError, Objects};
use tokio::sync::Mutex;

/// Reason why a ManagementCluster must not serve the cluster to which its kubeconfig leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The ManagementCluster served another cluster before.
    OtherCluster {
        /// Unique ID of the cluster that the ManagementCluster served before.
        own: String,
        /// Unique ID of the cluster to which the kubeconfig leads.
        found: String,
    },
    /// Another ManagementCluster serves the cluster.
    Duplicate {
        /// Namespace and name of the other ManagementCluster.
        first: ObjectKey,
    },
}

/// Admission of the clusters of all connections, one at a time.
#[derive(Default)]
pub struct Admission(Mutex<()>);

impl Admission {
    /// Admits the cluster `found` for the ManagementCluster with this key and UID, and records the
    /// cluster in the status. Returns the reason of a refusal.
    ///
    /// # Errors
    /// The ManagementClusters cannot be read or written.
    pub async fn admit(
        &self,
        objects: &dyn Objects,
        key: &ObjectKey,
        uid: &str,
        found: &str,
    ) -> Result<Option<Refusal>, ObjectError> {
        let _one_at_a_time = self.0.lock().await;
        let all = objects.list(MANAGEMENT_CLUSTER, None).await?;
        let all: Vec<ManagementCluster> =
            all.into_iter().filter_map(|object| objects::read(object).ok()).collect();
        let own = all.iter().find(|it| it.metadata.uid == uid && it.key() == *key);
        let own = own.ok_or_else(|| ObjectError::NotFound(key.to_string()))?;
        let refusal = check(own, &all, found);
        if refusal.is_none() && own.status.cluster_uid.is_none() {
            let mut status = own.status.clone();
            status.cluster_uid = Some(found.to_owned());
            objects::write_status(objects, MANAGEMENT_CLUSTER, &own.metadata, &status).await?;
        }
        Ok(refusal)
    }
}

/// Returns the reason why `own` must not serve the cluster `found`. `all` includes `own`.
fn check(own: &ManagementCluster, all: &[ManagementCluster], found: &str) -> Option<Refusal> {
    let recorded = own.status.cluster_uid.as_deref();
    if let Some(recorded) = recorded.filter(|recorded| *recorded != found) {
        return Some(Refusal::OtherCluster { own: recorded.to_owned(), found: found.to_owned() });
    }
    let age = |it: &ManagementCluster| (it.metadata.creation_timestamp, it.key());
    let others = all.iter().filter(|it| {
        it.key() != own.key()
            && it.metadata.deletion_timestamp.is_none()
            && it.status.cluster_uid.as_deref() == Some(found)
    });
    // Two records of one cluster exist only after a person changed a status: the older one stays.
    let first = others.min_by_key(|it| age(it))?;
    let is_first = recorded.is_some() && age(own) < age(first);
    (!is_first).then(|| Refusal::Duplicate { first: first.key() })
}

#[cfg(test)]
mod tests {
    use api::management_cluster::{MANAGEMENT_CLUSTER, ManagementCluster};
    use api::meta::ObjectKey;
    use objects::fake::Memory;
    use objects::{ObjectError, Objects as _};
    use serde_json::{Value, json};

    use super::{Admission, Refusal};

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("default", name)
    }

    fn put(memory: &Memory, name: &str, created: &str, recorded: Option<&str>) {
        let metadata = json!({ "name": name, "namespace": "default", "uid": name,
            "creationTimestamp": created });
        let status = recorded.map_or(json!({}), |uid| json!({ "clusterUID": uid }));
        let spec = json!({ "kubeconfigSecretRef": { "name": name } });
        let object = json!({ "metadata": metadata, "spec": spec, "status": status });
        memory.put(MANAGEMENT_CLUSTER, object);
    }

    fn recorded(memory: &Memory, name: &str) -> Option<String> {
        let object: Value = memory.peek(MANAGEMENT_CLUSTER, name).unwrap();
        let cluster: ManagementCluster = serde_json::from_value(object).unwrap();
        cluster.status.cluster_uid
    }

    #[tokio::test]
    async fn a_name_serves_one_cluster_until_it_is_unpaired() {
        let (memory, admission) = (Memory::default(), Admission::default());
        put(&memory, "prod", "2026-01-01T00:00:00Z", None);
        let admit =
            async |found: &'static str| admission.admit(&memory, &key("prod"), "prod", found).await;
        assert_eq!(admit("c1").await, Ok(None));
        assert_eq!(recorded(&memory, "prod").as_deref(), Some("c1"));
        let before = memory.peek(MANAGEMENT_CLUSTER, "prod");
        assert_eq!(admit("c1").await, Ok(None));
        let other = Refusal::OtherCluster { own: "c1".to_owned(), found: "c2".to_owned() };
        assert_eq!(admit("c2").await, Ok(Some(other)));
        assert_eq!(memory.peek(MANAGEMENT_CLUSTER, "prod"), before, "nothing is written");
        // Unpaired and paired again: another object without a record.
        memory.delete(MANAGEMENT_CLUSTER, &key("prod")).await.unwrap();
        assert!(matches!(admit("c2").await, Err(ObjectError::NotFound(_))));
        put(&memory, "prod", "2026-01-02T00:00:00Z", None);
        assert_eq!(admit("c2").await, Ok(None));
        assert_eq!(recorded(&memory, "prod").as_deref(), Some("c2"));
    }

    #[tokio::test]
    async fn a_cluster_has_one_management_cluster() {
        let (memory, admission) = (Memory::default(), Admission::default());
        put(&memory, "a", "2026-01-02T00:00:00Z", None);
        put(&memory, "b", "2026-01-01T00:00:00Z", None);
        let admit = async |name: &'static str| {
            admission.admit(&memory, &key(name), name, "c1").await.unwrap()
        };
        let (a, b) = tokio::join!(admit("a"), admit("b"));
        // The connection that comes first is the first, also after a restart of the box.
        assert_eq!((a, b), (None, Some(Refusal::Duplicate { first: key("a") })));
        assert_eq!(recorded(&memory, "b"), None);
        assert_eq!(admit("b").await, Some(Refusal::Duplicate { first: key("a") }));
        assert_eq!(admit("a").await, None);
        memory.delete(MANAGEMENT_CLUSTER, &key("a")).await.unwrap();
        assert_eq!(admit("b").await, None);
        // Two records are a mistake of a person: exactly the older one is served.
        put(&memory, "a", "2026-01-02T00:00:00Z", Some("c1"));
        assert_eq!(admit("b").await, None);
        assert_eq!(admit("a").await, Some(Refusal::Duplicate { first: key("b") }));
    }
}
