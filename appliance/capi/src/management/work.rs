//! Work that the box does on the objects of a connected management cluster.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use api::infrastructure::Contract;
use api::meta::{ObjectKey, Resource};
use objects::Objects;
use serde_json::Value;

/// Management cluster to which the box is connected.
#[derive(Clone)]
pub struct PairedCluster {
    /// Namespace and name of the ManagementCluster.
    pub key: ObjectKey,
    /// Unique ID of the management cluster, which the ManagementCluster also has in its status.
    pub cluster_uid: String,
    /// API of the management cluster.
    pub objects: Arc<dyn Objects>,
    /// The same API, which reads watched objects from memory without a request.
    pub watched: Arc<dyn Objects>,
    /// Contract of Cluster API in the management cluster.
    pub contract: Contract,
    /// Only namespace to serve; `None` for all namespaces.
    pub namespace: Option<String>,
    /// Value of the label `cluster.x-k8s.io/watch-filter`; `None` for all objects.
    pub watch_filter: Option<String>,
}

/// Function that receives kind, key and content of a changed object.
pub type ChangedObject = Arc<dyn Fn(Resource, ObjectKey, Option<&Value>) + Send + Sync>;

/// Work on one management cluster.
pub struct StartedWork {
    /// Function that is called after each change of an object, and after each complete list for all
    /// objects and for those that vanished, which are `None`. The function must not block. No
    /// machine may be erased because an object vanished.
    pub changed: ChangedObject,
    /// Future that does the work. It is dropped when the connection ends, and must not end earlier.
    pub run: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Work on the objects of management clusters, such as controllers.
pub trait Work: Send + Sync + 'static {
    /// Starts the work on one management cluster, after its API was reached. Called again after a
    /// change of the ManagementCluster, its credential or the served versions.
    fn start(&self, cluster: PairedCluster) -> StartedWork;
}

/// Work that does nothing: the objects are watched only.
pub struct WatchOnly;

impl Work for WatchOnly {
    fn start(&self, _cluster: PairedCluster) -> StartedWork {
        StartedWork { changed: Arc::new(|_, _, _| {}), run: Box::pin(std::future::pending()) }
    }
}
