//! API with the Cluster API objects: that of a management cluster, or that of the box.

use std::sync::Arc;

use api::infrastructure::Contract;
use api::infrastructure::cluster_api::WATCH_FILTER;
use api::meta::ObjectMeta;
use objects::Objects;

/// API with the Cluster API objects of one management cluster, or of the box.
#[derive(Clone)]
pub struct ManagementView {
    /// Access to the objects.
    pub objects: Arc<dyn Objects>,
    /// Name of the management cluster; `None` for the API of the box.
    pub name: Option<String>,
    /// Contract of the management cluster.
    pub contract: Contract,
    /// Value of the label [`WATCH_FILTER`] that objects must have; `None` to serve all objects.
    pub watch_filter: Option<String>,
}

impl ManagementView {
    /// Returns true for an object that the box must serve.
    pub fn served(&self, metadata: &ObjectMeta) -> bool {
        let label = metadata.labels.get(WATCH_FILTER);
        self.watch_filter.as_ref().is_none_or(|filter| label == Some(filter))
    }
}
