//! Connections to the management clusters that the box serves: one for each ManagementCluster.
//!
//! A connection ends when its ManagementCluster is deleted or suspended. Its end stops the watchers
//! and the controllers, and changes no machine. A connection that fails is kept and retried,
//! however long the outage lasts.

mod admission;
mod clock_skew;
mod connection;
mod credential;
mod discovery;
mod heartbeat;
mod lease;
mod report;
mod skew;
mod status_writer;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::core::SECRET;
use api::management_cluster::{KUBECONFIG_KEY, MANAGEMENT_CLUSTER, ManagementCluster};
use api::meta::ObjectKey;
use objects::{ObjectError, Objects};
use stdx::{Clock, Secret};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::admission::Admission;
use self::connection::{Connection, Input};

pub use self::credential::TokenClaims;
#[cfg(test)]
pub use self::credential::tests::token as tests_token;
pub use self::lease::{Device, LEASE, key as lease_key};
pub use self::work::{PairedCluster, StartedWork, WatchOnly, Work};

/// Interval at which ManagementClusters and their Secrets are read.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of management clusters of a box: each has a copy of its objects in memory.
pub const CLUSTERS_MAX: usize = 8;

/// Task that connects the box to its management clusters.
pub struct ManagementClusters {
    /// The box's own API, with the ManagementClusters and their Secrets.
    pub objects: Arc<dyn Objects>,
    /// Clock of the box.
    pub clock: Arc<dyn Clock>,
    /// This device, which is the only one of the box that works on the objects.
    pub device: Device,
    /// Work on the objects of each management cluster.
    pub work: Arc<dyn Work>,
}

/// Connection whose task runs.
struct Running {
    input: Input,
    stop: CancellationToken,
    /// Canceled before `stop` if a person ended the connection.
    give_up: CancellationToken,
}

/// Running connections, by the key of their ManagementCluster.
#[derive(Default)]
struct Connections {
    running: BTreeMap<ObjectKey, Running>,
    tasks: JoinSet<ObjectKey>,
    admission: Arc<Admission>,
}

impl ManagementClusters {
    /// Connects to all management clusters until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut connections = Connections::default();
        loop {
            match self.inputs().await {
                Ok(inputs) => connections.follow(&self, inputs).await,
                // The connections stay until the store can be read again.
                Err(error) => tracing::warn!(%error, "cannot list the management clusters"),
            }
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                Some(ended) = connections.tasks.join_next() => {
                    connections.ended(ended);
                }
            }
        }
        connections.stop_all().await;
    }

    /// Reads the ManagementClusters and their kubeconfigs.
    async fn inputs(&self) -> Result<BTreeMap<ObjectKey, Input>, ObjectError> {
        let mut inputs = BTreeMap::new();
        for object in self.objects.list(MANAGEMENT_CLUSTER, None).await? {
            let cluster: ManagementCluster = match objects::read(object) {
                Ok(cluster) => cluster,
                Err(error) => {
                    tracing::warn!(%error, "a management cluster is not served");
                    continue;
                }
            };
            if cluster.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let kubeconfig = self.kubeconfig(&cluster).await?;
            let is_too_many = inputs.len() >= CLUSTERS_MAX;
            let key = cluster.key();
            let uid = cluster.metadata.uid;
            let (spec, renewed) = (cluster.spec, Arc::default());
            inputs.insert(key, Input { uid, spec, kubeconfig, is_too_many, renewed });
        }
        Ok(inputs)
    }

    /// Reads the kubeconfig of a management cluster; `None` if the Secret or its key is missing.
    async fn kubeconfig(&self, cluster: &ManagementCluster) -> Result<Option<Secret>, ObjectError> {
        let name = &cluster.spec.kubeconfig_secret_ref.name;
        let key = ObjectKey::new(&cluster.metadata.namespace, name);
        let secret: Option<api::core::Secret> =
            objects::find(self.objects.as_ref(), SECRET, &key).await?;
        Ok(secret.and_then(|secret| secret.text(KUBECONFIG_KEY)))
    }
}

impl Connections {
    /// Starts, restarts and stops connections, so that each input has one.
    async fn follow(&mut self, clusters: &ManagementClusters, inputs: BTreeMap<ObjectKey, Input>) {
        let changed: Vec<ObjectKey> = self
            .running
            .iter()
            .filter(|(key, running)| {
                inputs.get(*key).is_none_or(|input| !running.input.is_same(input))
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in changed {
            let is_ended = inputs.get(&key).is_none_or(|input| input.spec.suspend);
            if let Some(running) = self.running.get(&key).filter(|_| is_ended) {
                running.give_up.cancel();
            }
            self.stop(&key).await;
        }
        for (key, input) in inputs {
            if self.running.contains_key(&key) {
                continue;
            }
            let (stop, give_up) = (CancellationToken::new(), CancellationToken::new());
            let connection = Connection {
                key: key.clone(),
                input: input.clone(),
                objects: Arc::clone(&clusters.objects),
                clock: Arc::clone(&clusters.clock),
                device: clusters.device.clone(),
                give_up: give_up.clone(),
                work: Arc::clone(&clusters.work),
                admission: Arc::clone(&self.admission),
            };
            let (ended, running) = (key.clone(), connection.run(stop.clone()));
            self.tasks.spawn(async move {
                running.await;
                ended
            });
            self.running.insert(key, Running { input, stop, give_up });
        }
    }

    /// Stops a connection, and waits for its end: an object never has two controllers.
    async fn stop(&mut self, key: &ObjectKey) {
        if let Some(running) = self.running.get(key) {
            running.stop.cancel();
        }
        while self.running.contains_key(key) {
            match self.tasks.join_next().await {
                Some(ended) => self.ended(ended),
                None => return,
            }
        }
    }

    async fn stop_all(&mut self) {
        self.running.values().for_each(|running| running.stop.cancel());
        while let Some(ended) = self.tasks.join_next().await {
            self.ended(ended);
        }
    }

    fn ended(&mut self, ended: Result<ObjectKey, tokio::task::JoinError>) {
        match ended {
            Ok(key) => {
                self.running.remove(&key);
            }
            // A panic is passed on, because a connection that silently stops would hide the bug.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

#[cfg(test)]
mod tests;
