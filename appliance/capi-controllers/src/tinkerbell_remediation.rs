//! Controller for TinkerbellRemediations: repairs a machine that a MachineHealthCheck found
//! unhealthy. First the BMC switches the machine off and on. A machine that stays unhealthy is
//! replaced: the box sets the condition `OwnerRemediated` of the Machine to `False`, so that the
//! owner of the Machine (MachineSet or control plane) deletes the Machine and creates another.
//!
//! The Hardware of a replaced machine was released last, so the new machine gets other Hardware if
//! any is free, else the same Hardware, installed again.

mod decide;
mod observe;
mod owner_remediated;

use std::sync::Arc;

use api::bmc::{JOB, Job};
use api::infrastructure::TINKERBELL_REMEDIATION;
use api::meta::{ObjectKey, ObjectMeta};
use objects::{ObjectError, Objects, gone_is_fine, read, write_status};
use stdx::Clock;

use crate::ManagementView;
use crate::management_view::ViewEvent;
use api::infrastructure::CLUSTER_UID;
use controllers::runtime::{Reconciled, Reconciler, Requeue};
use decide::Step;
pub use decide::{REMEDIATION, REMEDIATION_NAMESPACE};
use observe::Observed;

/// Reconciler that repairs the machines of one management cluster.
pub struct TinkerbellRemediationReconciler {
    /// API with the TinkerbellRemediations, TinkerbellMachines and Machines.
    pub view: ManagementView,
    /// API of the box, with Hardware and Jobs.
    pub objects: Arc<dyn Objects>,
    /// Clock for times in the status.
    pub clock: Arc<dyn Clock>,
    /// Unique ID of the box, which never changes.
    pub box_id: String,
}

impl Reconciler for TinkerbellRemediationReconciler {
    fn name(&self) -> &'static str {
        "tinkerbellremediation"
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            let observed = match self.observe(key).await {
                Err(ObjectError::NotFound(_)) => return self.vanished(key).await,
                observed => observed?,
            };
            let decision = decide::decide(&observed, self.clock.now());
            for step in decision.steps {
                self.apply(&observed, step).await?;
            }
            Ok(decision.requeue.map_or(Requeue::OnSignal, Requeue::After))
        })
    }
}

impl TinkerbellRemediationReconciler {
    async fn apply(&self, observed: &Observed, step: Step) -> Result<(), ObjectError> {
        let metadata: &ObjectMeta = &observed.request.metadata;
        match step {
            Step::Create(resource, job) => match self.objects.create(resource, job).await {
                Ok(_) | Err(ObjectError::AlreadyExists(_)) => Ok(()),
                Err(error) => Err(error),
            },
            Step::Delete(resource, key) => gone_is_fine(self.objects.delete(resource, &key).await),
            Step::Replace(message) => self.replace(&observed.request.key(), &message).await,
            Step::Status(status) => {
                let objects = self.view.objects.as_ref();
                write_status(objects, TINKERBELL_REMEDIATION, metadata, status.as_ref()).await
            }
            Step::Record { reason, message, warning } => {
                let event = ViewEvent { reason, message, warning, at: self.clock.now() };
                self.view.record(TINKERBELL_REMEDIATION, metadata, event);
                Ok(())
            }
        }
    }

    /// Returns the unique ID of the management cluster; `None` for the box.
    fn cluster_uid(&self) -> Option<&str> {
        self.view.cluster.as_ref().map(|cluster| cluster.uid.as_str())
    }

    /// Deletes the Jobs of a request that does not exist any more. A Job that has switched a
    /// machine off switches it on before it ends.
    async fn vanished(&self, key: &ObjectKey) -> Result<Requeue, ObjectError> {
        for object in self.objects.list(JOB, None).await? {
            let Ok(job) = read::<Job>(object) else { continue };
            let label = |name| job.metadata.labels.get(name).map(String::as_str);
            let is_own = label(REMEDIATION) == Some(&key.name)
                && label(REMEDIATION_NAMESPACE) == Some(&key.namespace)
                && label(CLUSTER_UID).unwrap_or_default() == self.cluster_uid().unwrap_or_default();
            if is_own {
                gone_is_fine(self.objects.delete(JOB, &job.key()).await)?;
            }
        }
        Ok(Requeue::OnSignal)
    }

    /// Requests the replacement of the Machine, unless it was requested before.
    async fn replace(&self, key: &ObjectKey, message: &str) -> Result<(), ObjectError> {
        let (objects, resource) = (self.view.objects.as_ref(), self.view.contract.machine());
        let mut machine = objects.get(resource, key).await?;
        let now = self.clock.now();
        if owner_remediated::request(&mut machine, self.view.contract, message, now) {
            objects.update_status(resource, machine).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
