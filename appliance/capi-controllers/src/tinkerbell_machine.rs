//! Controller for TinkerbellMachines of `infrastructure.cluster.x-k8s.io`: chooses a Hardware,
//! installs the machine by a Workflow, reports the result, and releases the Hardware.
//!
//! Crash-safe order of an installation: owner labels of the Hardware, user data, Template,
//! Workflow. After the Workflow succeeded: the annotation `provisioned` of the Hardware, then
//! `spec.providerID`, then the status. A machine whose `spec.providerID` the box could have written
//! is therefore never installed again.
//!
//! Template and Workflow have the name of the machine, as in CAPT. If an object of another machine
//! has this name, the Hardware records another name first.

mod apply;
pub(crate) mod conditions;
mod decide;
mod live_reads;
mod observe;
mod plan;
mod progress;
mod release;
mod reservations;
mod turn;
mod wipe;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::infrastructure::{CLUSTER_UID, OWNER_NAME, OWNER_NAMESPACE, TINKERBELL_MACHINE};
use api::meta::{ObjectKey, ObjectMeta, Resource};
use api::tinkerbell::{HARDWARE, Hardware, TEMPLATE, WORKFLOW};
use hardware_choice::HardwareRequest;
use objects::{ObjectError, Objects, find, gone_is_fine, read};
use serde_json::Value;
use stdx::Clock;

use self::decide::{Decision, Step};
use self::live_reads::LiveReads;
use self::observe::Observed;
pub use self::reservations::Reservations;
pub use self::turn::Waiting;
use crate::{KnownMachines, ManagementView};
use controllers::runtime::{Reconciled, Reconciler, Requeue};

/// Addresses of the box, as machines reach it.
pub trait MetadataUrls: Send + Sync + 'static {
    /// Returns the URL of the metadata service on the network of `hardware`, without a final slash;
    /// `None` if the box serves no network.
    fn metadata_url(&self, hardware: &Hardware) -> Option<String>;
}

/// Reconciler that provisions and releases the machines of one management cluster, or of the box's
/// own API.
pub struct TinkerbellMachineReconciler {
    /// API with the TinkerbellMachines, Machines, Clusters and Secrets.
    pub view: ManagementView,
    /// API of the box, with Hardware, OSImages, Templates, Workflows and Jobs.
    pub objects: Arc<dyn Objects>,
    /// Addresses of the box, for the configuration of cloud-init.
    pub metadata: Arc<dyn MetadataUrls>,
    /// Clock for times in the status.
    pub clock: Arc<dyn Clock>,
    /// Name of the box: the default failure domain.
    pub box_name: String,
    /// TinkerbellMachines of all management clusters.
    pub clusters: Arc<dyn KnownMachines>,
    /// Unique ID of the box, which never changes.
    pub box_id: String,
    /// Hardware that machines of all management clusters are about to claim.
    pub reservations: Arc<Reservations>,
    /// Machines that wait for another box.
    pub waiting: Waiting,
}

/// Returns true if the box with the ID `box_id` is registered as the only one that serves the
/// TinkerbellMachine `metadata`.
pub fn is_registered(metadata: &ObjectMeta, box_id: &str) -> bool {
    metadata.annotations.get(decide::BOX).is_some_and(|id| id == box_id)
}

impl Reconciler for TinkerbellMachineReconciler {
    fn name(&self) -> &'static str {
        "tinkerbellmachine"
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            let (mut observed, decision) = match self.decide(key).await {
                Err(ObjectError::NotFound(_)) => return self.vanished(key).await,
                decided => decided?,
            };
            let mut metadata = observed.machine.metadata.clone();
            let decision = if decision.steps.iter().any(|step| claimed(step).is_some()) {
                match self.claim(&mut observed, &mut metadata).await? {
                    (decision, Some(host)) => {
                        self.follow_claim(&mut observed, &mut metadata, decision, &host).await?
                    }
                    (decision, None) => decision,
                }
            } else {
                decision
            };
            for step in decision.steps {
                self.apply(&observed, &mut metadata, step).await?;
            }
            Ok(decision.requeue.map_or(Requeue::OnSignal, Requeue::After))
        })
    }
}

/// Returns the labels with which a machine owns a Hardware.
fn owner_labels(request: &HardwareRequest) -> BTreeMap<String, String> {
    let ObjectKey { namespace, name } = request.machine.clone();
    let uid = request.cluster_uid.clone().map(|uid| (CLUSTER_UID, uid));
    let labels = [(OWNER_NAME, name), (OWNER_NAMESPACE, namespace)].into_iter().chain(uid);
    labels.map(|(label, value)| (label.to_owned(), value)).collect()
}

/// Returns the Hardware that a step claims.
fn claimed(step: &Step) -> Option<ObjectKey> {
    match step {
        Step::Claim(host) => Some(host.key()),
        _ => None,
    }
}

impl TinkerbellMachineReconciler {
    /// Observes and decides, with as many live reads as the decision needs.
    async fn decide(&self, key: &ObjectKey) -> Result<(Observed, Decision), ObjectError> {
        let mut live = LiveReads::default();
        loop {
            let observed = self.observe(key, live).await?;
            let decision = decide::decide(&observed, self.clock.now());
            let needed = LiveReads::of(&decision.steps);
            if self.view.cluster.is_none()
                || live.include(needed)
                || self.is_current(&observed, needed).await?
            {
                return Ok((observed, decision));
            }
            live = live.with(needed);
        }
    }

    /// Returns true if the API has the same versions of the objects that permit a decision.
    async fn is_current(&self, observed: &Observed, live: LiveReads) -> Result<bool, ObjectError> {
        let objects = self.view.objects.as_ref();
        let is_same = async |resource: Resource, metadata: &ObjectMeta| {
            let key = ObjectKey::new(&metadata.namespace, &metadata.name);
            let object: Value = find(objects, resource, &key).await?.unwrap_or_default();
            let version = &object["metadata"]["resourceVersion"];
            Ok::<_, ObjectError>(*version == *metadata.resource_version)
        };
        if live.machine && !is_same(TINKERBELL_MACHINE, &observed.machine.metadata).await? {
            return Ok(false);
        }
        match observed.cluster.as_ref().filter(|_| live.cluster) {
            Some(cluster) => is_same(self.view.contract.cluster(), &cluster.metadata).await,
            // Only the API reports a Cluster as missing.
            None => Ok(true),
        }
    }

    /// Repeats a decision as if all machines that are about to claim a Hardware owned it, and
    /// executes its steps up to the claim. Returns the rest of the decision, and the Hardware.
    async fn claim(
        &self,
        observed: &mut Observed,
        metadata: &mut ObjectMeta,
    ) -> Result<(Decision, Option<ObjectKey>), ObjectError> {
        observed.hosts = self.hosts(observed).await?;
        let labels = owner_labels(&observed.request);
        let ((mut decision, host), _reservation) = self.reservations.reserve(labels, |reserved| {
            for host in &mut observed.hosts {
                if let Some(labels) = reserved.get(&host.key()) {
                    host.metadata.labels.extend(labels.clone());
                }
            }
            let decision = decide::decide(observed, self.clock.now());
            let host = decision.steps.iter().find_map(claimed);
            ((decision, host.clone()), host)
        });
        let count = decision.steps.iter().position(|it| claimed(it).is_some());
        for step in decision.steps.drain(..count.map_or(0, |at| at + 1)) {
            self.apply(observed, metadata, step).await?;
        }
        Ok((decision, host))
    }

    /// Decides again after the claim of a Hardware, so that one write carries the status of the
    /// claim and of the next steps. `claim` is the rest of the first decision.
    async fn follow_claim(
        &self,
        observed: &mut Observed,
        metadata: &mut ObjectMeta,
        claim: Decision,
        host: &ObjectKey,
    ) -> Result<Decision, ObjectError> {
        let mut status = None;
        for step in claim.steps {
            match step {
                Step::Status(of_claim) => status = Some(of_claim),
                step => self.apply(observed, metadata, step).await?,
            }
        }
        observed.machine.metadata.clone_from(metadata);
        if let Some(of_claim) = &status {
            observed.machine.status.clone_from(of_claim);
        }
        if let Err(error) = self.observe_claimed(observed, host).await {
            if let Some(status) = status {
                self.apply(observed, metadata, Step::Status(status)).await?;
            }
            return Err(error);
        }
        let mut decision = decide::decide(observed, self.clock.now());
        if !decision.steps.iter().any(|step| matches!(step, Step::Status(_))) {
            decision.steps.extend(status.map(Step::Status));
        }
        Ok(decision)
    }

    /// Ends the erase of the Hardware of a TinkerbellMachine that vanished without a release. The
    /// machine itself continues to run.
    async fn vanished(&self, key: &ObjectKey) -> Result<Requeue, ObjectError> {
        self.waiting.forget(key);
        let uid = self.view.cluster.as_ref().map(|cluster| cluster.uid.as_str());
        for object in self.objects.list(HARDWARE, None).await? {
            let Ok(host) = read::<Hardware>(object) else { continue };
            if hardware_choice::owner(&host).as_ref() != Some(key)
                || hardware_choice::cluster_uid(&host) != uid
            {
                continue;
            }
            let Some(begun) = wipe::begun(&host) else { continue };
            for resource in [WORKFLOW, TEMPLATE] {
                gone_is_fine(self.objects.delete(resource, &begun).await)?;
            }
            apply::edit(self.objects.as_ref(), HARDWARE, &host.metadata, apply::forget_wipe)
                .await?;
        }
        Ok(Requeue::OnSignal)
    }
}

#[cfg(test)]
mod tests;
