//! Cluster of Cluster API that owns an infrastructure object.

use api::infrastructure::cluster_api::Cluster;
use api::meta::{ObjectKey, ObjectMeta, Resource};
use objects::{ObjectError, find, read};

use crate::ManagementView;

/// Returns the Cluster in the owner references of the object `metadata`; `None` if the object has
/// no such reference, or the Cluster does not exist.
pub async fn referenced(
    view: &ManagementView,
    metadata: &ObjectMeta,
) -> Result<Option<Cluster>, ObjectError> {
    let resource = view.contract.cluster();
    let is_cluster = |kind: &str, api_version: &str| {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        kind == resource.kind && group == resource.group
    };
    let references = &metadata.owner_references;
    let Some(owner) = references.iter().find(|it| is_cluster(&it.kind, &it.api_version)) else {
        return Ok(None);
    };
    let key = ObjectKey::new(&metadata.namespace, &owner.name);
    find(view.watched.as_ref(), resource, &key).await
}

/// Returns the Cluster in the same namespace whose infrastructure is the object `metadata` of kind
/// `of`. A Cluster that the box cannot read is left out.
pub async fn referring(
    view: &ManagementView,
    of: Resource,
    metadata: &ObjectMeta,
) -> Result<Option<Cluster>, ObjectError> {
    let all = view.watched.list(view.contract.cluster(), Some(&metadata.namespace)).await?;
    let mut all = all.into_iter().filter_map(|object| read::<Cluster>(object).ok());
    Ok(all.find(|cluster| {
        let reference = cluster.spec.infrastructure_ref.as_ref();
        reference.is_some_and(|to| to.refers_to(&cluster.metadata.namespace, of, metadata))
    }))
}
