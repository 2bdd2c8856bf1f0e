//! Controller for TinkerbellClusters of `infrastructure.cluster.x-k8s.io`: determines the endpoint
//! of the control plane, and reports the failure domains of the box.
//!
//! The deletion of a TinkerbellCluster needs no finalizer. An endpoint that the box provides is an
//! object of the box. It is deleted after the cluster, when no Hardware of the box has a machine of
//! the control plane any more: `clusterctl move` deletes a cluster that continues to run.
//! TinkerbellMachines release their Hardware themselves.

mod backends;
mod decide;
mod domains;
mod endpoint;
mod error;
mod images;
mod live_host;
mod observe;
pub(crate) mod owner;
mod provided;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use api::infrastructure::{Endpoint, TINKERBELL_CLUSTER};
use api::meta::ObjectKey;
use objects::{ObjectError, Objects, write_status};
use serde_json::json;
use stdx::{Clock, MacAddr};

use crate::ManagementView;
use crate::management_view::ViewEvent;
use controllers::runtime::{Reconciled, Reconciler, Requeue};
use decide::Step;
use observe::Observed;

pub(crate) use domains::BOXES;
pub use images::{ImageChecks, ImageServers, Reached, Reaching};
pub use provided::clusters_with_endpoints;

/// Wait until the next decision after a new result of an image.
const NEXT: Duration = Duration::from_millis(1);

/// Future of [`BoxAddresses::other_host`]; boxed, so that [`BoxAddresses`] can be a trait object.
pub type OtherHost<'a> = Pin<Box<dyn Future<Output = Option<MacAddr>> + Send + 'a>>;

/// Network addresses of the box, and of hosts beside it.
pub trait BoxAddresses: Send + Sync + 'static {
    /// Returns true for an address of the box itself.
    fn has(&self, address: IpAddr) -> bool;
    /// Returns the MAC of another host that answers for `address` on the network of `interface`;
    /// `None` if none answers within a second, or if the box cannot ask.
    fn other_host<'a>(&'a self, interface: &'a str, address: Ipv4Addr) -> OtherHost<'a>;
}

/// Reconciler for the clusters of one management cluster, or of the box's own API.
pub struct TinkerbellClusterReconciler {
    /// API with the TinkerbellClusters and Clusters.
    pub view: ManagementView,
    /// API of the box, with the Hardware.
    pub hardware: Arc<dyn Objects>,
    /// Addresses that a control plane must not have.
    pub addresses: Arc<dyn BoxAddresses>,
    /// Clock for times in the status.
    pub clock: Arc<dyn Clock>,
    /// Name of the box: the default failure domain.
    pub box_name: String,
    /// Servers of the images; `None` if the box downloads no images.
    pub image_servers: Option<Arc<dyn ImageServers>>,
    /// Last results of the checks of images.
    pub image_checks: ImageChecks,
}

impl Reconciler for TinkerbellClusterReconciler {
    fn name(&self) -> &'static str {
        "tinkerbellcluster"
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            let observed = match self.observe(key).await {
                Ok(observed) => observed,
                Err(ObjectError::NotFound(_)) => return self.forget(key).await,
                Err(error) => return Err(error),
            };
            let decision = decide::decide(&observed, self.clock.now());
            for step in decision.steps {
                self.apply(&observed, step).await?;
            }
            // A slow server delays nothing but the condition about the images.
            match self.check_images(&observed).await {
                true => Ok(Requeue::After(NEXT)),
                false => Ok(decision.requeue),
            }
        })
    }
}

impl TinkerbellClusterReconciler {
    async fn apply(&self, observed: &Observed, step: Step) -> Result<(), ObjectError> {
        let objects = self.view.objects.as_ref();
        let metadata = &observed.cluster.metadata;
        match step {
            Step::SetEndpoint(endpoint) => self.set_endpoint(observed, &endpoint).await,
            Step::Provide(spec) => self.put_endpoint(&spec).await,
            Step::Withdraw(name) => self.withdraw(&name).await,
            Step::Status(status) => {
                write_status(objects, TINKERBELL_CLUSTER, metadata, status.as_ref()).await
            }
            Step::Record { reason, message, warning } => {
                let event = ViewEvent { reason, message, warning, at: self.clock.now() };
                self.view.record(TINKERBELL_CLUSTER, metadata, event);
                Ok(())
            }
        }
    }

    /// Writes the endpoint into the JSON that was read, so that fields without a type are kept.
    async fn set_endpoint(
        &self,
        observed: &Observed,
        endpoint: &Endpoint,
    ) -> Result<(), ObjectError> {
        let mut object = observed.object.clone();
        let spec = &mut object["spec"]["controlPlaneEndpoint"];
        spec["host"] = json!(endpoint.host);
        spec["port"] = json!(endpoint.port);
        self.view.objects.update(TINKERBELL_CLUSTER, object).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
