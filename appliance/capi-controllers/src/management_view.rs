//! API with the Cluster API objects: that of a management cluster, or that of the box.

use std::sync::Arc;

use api::core::ObjectEvent;
use api::infrastructure::Contract;
use api::infrastructure::cluster_api::WATCH_FILTER;
use api::meta::{ObjectKey, ObjectMeta, Resource};
use jiff::Timestamp;
use objects::{Objects, Pending};

/// Identity of the management cluster of a view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterIdentity {
    /// Unique ID, which never changes, and which no other management cluster has.
    pub uid: String,
    /// Name on the box, for people. The cluster may be paired again under another name, and another
    /// cluster under this name.
    pub name: String,
}

/// API with the Cluster API objects of one management cluster, or of the box.
#[derive(Clone)]
pub struct ManagementView {
    /// Access to the objects, for writes and for decisions that cannot be taken back.
    pub objects: Arc<dyn Objects>,
    /// Access to the same objects without requests where possible: a read may be older than the
    /// object, but not than the last write of the box. A missing object is missing in the API.
    pub watched: Arc<dyn Objects>,
    /// The management cluster; `None` for the API of the box.
    pub cluster: Option<ClusterIdentity>,
    /// Contract of the management cluster.
    pub contract: Contract,
    /// Value of the label [`WATCH_FILTER`] that objects must have; `None` to serve all objects.
    pub watch_filter: Option<String>,
}

/// TinkerbellMachines of all management clusters, and of the box.
pub trait KnownMachines: Send + Sync + 'static {
    /// Returns true if the management cluster with this unique ID has a TinkerbellMachine `key`,
    /// and false if the API of the cluster says that it has none, or if the box is not paired with
    /// such a cluster. The ID of the box's own API is empty.
    ///
    /// # Errors
    /// The API cannot be read, which says nothing about the machine.
    fn has_machine<'a>(&'a self, cluster_uid: &'a str, key: &'a ObjectKey) -> Pending<'a, bool>;
}

/// Event about an object of a management cluster.
pub struct ViewEvent {
    /// Machine-readable reason of the Event; its spelling never changes.
    pub reason: &'static str,
    /// Description of the Event for a person.
    pub message: String,
    /// True for an Event of type `Warning`.
    pub warning: bool,
    /// Time of the Event.
    pub at: Timestamp,
}

impl ManagementView {
    /// Records an Event about the object `metadata` of kind `about`.
    pub fn record(&self, about: Resource, metadata: &ObjectMeta, event: ViewEvent) {
        self.objects.record(ObjectEvent {
            about,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            reason: event.reason.to_owned(),
            message: event.message,
            warning: event.warning,
            component: format!("{}-controller", about.kind.to_lowercase()),
            at: event.at,
        });
    }

    /// Returns true for an object that the box must serve.
    pub fn served(&self, metadata: &ObjectMeta) -> bool {
        let label = metadata.labels.get(WATCH_FILTER);
        self.watch_filter.as_ref().is_none_or(|filter| label == Some(filter))
    }
}
