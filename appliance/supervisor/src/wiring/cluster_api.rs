//! Wiring of the Cluster API controllers: for the box's own API, and for each management cluster.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use api::core::NAMESPACE;
use api::infrastructure::Contract;
use api::meta::ObjectKey;
use capi::management::{Device, ManagementClusters, PairedCluster, StartedWork, Work};
use capi_controllers::signals::{AllClusterApiSignals, ClusterApiSignals};
use capi_controllers::tinkerbell_cluster::{
    ImageChecks, ImageServers, Reaching, TinkerbellClusterReconciler, clusters_with_endpoints,
};
use capi_controllers::tinkerbell_machine::{Reservations, TinkerbellMachineReconciler, Waiting};
use capi_controllers::tinkerbell_machine_template::TinkerbellMachineTemplateReconciler;
use capi_controllers::tinkerbell_remediation::TinkerbellRemediationReconciler;
use capi_controllers::{ClusterIdentity, ManagementView, name_of};
use controllers::runtime::Controller;
use endpoints::{Endpoints, KernelAddresses};
use futures_util::future;
use objects::Objects;
use provisioning::images::Images;
use stdx::Clock;
use tokio_util::sync::CancellationToken;

use super::Wiring;
use super::boot::METADATA_PORT;
use super::own_addresses::OwnAddresses;
use crate::device_id;

/// Parts that the controllers of all management clusters share.
pub(super) struct ClusterApi {
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    addresses: Arc<OwnAddresses>,
    image_servers: Option<Arc<dyn ImageServers>>,
    box_name: String,
    device: Device,
    signals: Arc<AllClusterApiSignals>,
    reservations: Arc<Reservations>,
}

/// Servers of images, as the cache of the box reaches them.
struct Servers(Images);

impl ImageServers for Servers {
    fn reach<'a>(&'a self, urls: &'a [String]) -> Reaching<'a> {
        Box::pin(future::join_all(urls.iter().map(|url| self.0.reach(url))))
    }
}

/// Removes the signals of a management cluster after the end of its controllers.
struct Registration {
    cluster_uid: String,
    own: Arc<ClusterApiSignals>,
    all: Arc<AllClusterApiSignals>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.all.remove(&self.cluster_uid, &self.own);
    }
}

impl ClusterApi {
    /// Returns the signals of all management clusters and of the box's own API.
    pub(super) fn signals(&self) -> Arc<AllClusterApiSignals> {
        Arc::clone(&self.signals)
    }

    /// Returns the controllers for one API, and their signals.
    fn controllers(&self, view: &ManagementView) -> (Arc<ClusterApiSignals>, [Controller; 4]) {
        let machine = TinkerbellMachineReconciler {
            view: view.clone(),
            objects: Arc::clone(&self.objects),
            metadata: self.addresses.clone(),
            clock: Arc::clone(&self.clock),
            box_name: self.box_name.clone(),
            clusters: self.signals.clone(),
            box_id: self.device.box_id.clone(),
            reservations: Arc::clone(&self.reservations),
            waiting: Waiting::default(),
        };
        let cluster = TinkerbellClusterReconciler {
            view: view.clone(),
            hardware: Arc::clone(&self.objects),
            addresses: self.addresses.clone(),
            clock: Arc::clone(&self.clock),
            box_name: self.box_name.clone(),
            image_servers: self.image_servers.clone(),
            image_checks: ImageChecks::default(),
        };
        let template = TinkerbellMachineTemplateReconciler {
            view: view.clone(),
            hardware: Arc::clone(&self.objects),
            clock: Arc::clone(&self.clock),
            box_name: self.box_name.clone(),
        };
        let remediation = TinkerbellRemediationReconciler {
            view: view.clone(),
            objects: Arc::clone(&self.objects),
            clock: Arc::clone(&self.clock),
            box_id: self.device.box_id.clone(),
        };
        let controllers = [
            Controller::new(Arc::new(machine)),
            Controller::new(Arc::new(cluster)),
            Controller::new(Arc::new(template)),
            Controller::new(Arc::new(remediation)),
        ];
        let signals = controllers.each_ref().map(Controller::signals);
        let signals = Arc::new(ClusterApiSignals::new(signals));
        let cluster_uid = view.cluster.as_ref().map(|cluster| cluster.uid.as_str());
        self.signals.insert(cluster_uid, Arc::clone(&signals), Arc::clone(&view.objects));
        (signals, controllers)
    }
}

/// Signals the clusters that have an endpoint of the box, because they may have been deleted while
/// the box did not watch them.
async fn signal_endpoints(
    objects: &dyn Objects,
    cluster_uid: Option<&str>,
    signals: &ClusterApiSignals,
) {
    match clusters_with_endpoints(objects, cluster_uid).await {
        Ok(clusters) => clusters.into_iter().for_each(|key| signals.cluster.signal(key)),
        Err(error) => tracing::warn!(%error, "cannot read the control-plane endpoints"),
    }
}

impl Work for ClusterApi {
    fn start(&self, cluster: PairedCluster) -> StartedWork {
        let cluster_uid = cluster.cluster_uid;
        let name = name_of(&cluster.key);
        let view = ManagementView {
            objects: cluster.objects,
            watched: cluster.watched,
            cluster: Some(ClusterIdentity { uid: cluster_uid.clone(), name }),
            contract: cluster.contract,
            watch_filter: cluster.watch_filter,
        };
        let (signals, controllers) = self.controllers(&view);
        let (own, objects) = (Arc::clone(&signals), Arc::clone(&self.objects));
        let uid = cluster_uid.clone();
        let all = Arc::clone(&self.signals);
        let registration = Registration { cluster_uid, own: Arc::clone(&signals), all };
        StartedWork {
            changed: Arc::new(move |resource, key, object| match object {
                Some(object) => signals.changed(resource, object),
                None => signals.removed(resource, &key),
            }),
            run: Box::pin(async move {
                let _registration = registration;
                signal_endpoints(objects.as_ref(), Some(&uid), &own).await;
                // The connection drops this future at its end.
                let run = |controller: Controller| controller.run(CancellationToken::new());
                future::join_all(controllers.map(run)).await;
            }),
        }
    }
}

impl Wiring {
    /// Starts the controllers for the box's own API. Returns the parts for management clusters, and
    /// the signals of the box's own API.
    ///
    /// # Errors
    /// The first objects of the store, or the ID of the device, cannot be read.
    pub(super) async fn cluster_api(
        &mut self,
        state: &Path,
    ) -> anyhow::Result<(ClusterApi, Arc<ClusterApiSignals>)> {
        let config = Arc::clone(&self.config);
        // The UID of this namespace is in the store and its backups, so a restored box keeps it.
        let namespace = self.objects.get(NAMESPACE, &ObjectKey::new("", "default")).await;
        let namespace = namespace.context("cannot read the namespace default")?;
        let box_id = namespace["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let box_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let device_id = device_id::ensure(state).context("cannot keep the ID of the device")?;
        let device = Device { box_id, holder: format!("{box_name}_{device_id}") };
        let servers = Arc::new(Servers(self.images.clone()));
        let image_servers = config.images.is_some().then_some(servers as Arc<dyn ImageServers>);
        let cluster_api = ClusterApi {
            objects: Arc::clone(&self.objects),
            clock: Arc::clone(&self.clock),
            addresses: Arc::new(OwnAddresses { config, metadata_port: METADATA_PORT }),
            image_servers,
            box_name,
            device,
            signals: Arc::clone(&self.cluster_signals),
            reservations: Arc::default(),
        };
        let view = ManagementView {
            objects: Arc::clone(&self.objects),
            watched: Arc::clone(&self.objects),
            cluster: None,
            contract: Contract::V1beta1,
            watch_filter: None,
        };
        let (own, controllers) = cluster_api.controllers(&view);
        signal_endpoints(self.objects.as_ref(), None, &own).await;
        let is_safe_mode = self.safe.mode.is_some();
        for controller in controllers.into_iter().filter(|_| !is_safe_mode) {
            let running = controller.run(self.shutdown.clone());
            self.spawn("cluster api controller", async move {
                running.await;
                Ok(())
            });
        }
        Ok((cluster_api, own))
    }

    /// Starts the task that provides the control-plane endpoints.
    pub(super) fn endpoints(&mut self) {
        let endpoints =
            Endpoints { objects: Arc::clone(&self.objects), host: Arc::new(KernelAddresses) };
        let running = endpoints.run(self.shutdown.clone());
        self.spawn("control-plane endpoints", async move {
            running.await.context("cannot set up TLS for checks of control planes")
        });
    }

    /// Connects to the management clusters; not in safe mode, in which no machine is changed.
    pub(super) fn management_clusters(&mut self, cluster_api: ClusterApi) {
        if self.safe.mode.is_some() {
            return;
        }
        let clusters = ManagementClusters {
            objects: Arc::clone(&self.objects),
            clock: Arc::clone(&self.clock),
            device: cluster_api.device.clone(),
            work: Arc::new(cluster_api),
        };
        let running = clusters.run(self.shutdown.clone());
        self.spawn("management clusters", async move {
            running.await;
            Ok(())
        });
    }
}
