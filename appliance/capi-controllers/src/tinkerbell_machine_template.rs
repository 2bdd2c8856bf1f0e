//! Controller for TinkerbellMachineTemplates of `infrastructure.cluster.x-k8s.io`: reports the
//! Hardware that machines of a template can use, and the machines that have another spec than their
//! template. The cluster autoscaler reads the capacity to scale a MachineDeployment up from zero
//! machines.
//!
//! The deletion of a template needs no finalizer and no step, because a template reserves no
//! Hardware.

mod box_hardware;
mod decide;
mod former_spec;
mod observe;
mod quantity;
mod size;

use std::sync::Arc;

use api::infrastructure::TINKERBELL_MACHINE_TEMPLATE;
use api::meta::{ObjectKey, ObjectMeta};
use objects::{ObjectError, Objects, write_status};
use stdx::Clock;

use crate::ManagementView;
use crate::management_view::ViewEvent;
use controllers::runtime::{Reconciled, Reconciler};
use decide::Step;

/// Reconciler for the templates of one management cluster, or of the box's own API.
pub struct TinkerbellMachineTemplateReconciler {
    /// API with the TinkerbellMachineTemplates and Clusters.
    pub view: ManagementView,
    /// API of the box, with the Hardware.
    pub hardware: Arc<dyn Objects>,
    /// Clock for times in the status.
    pub clock: Arc<dyn Clock>,
    /// Name of the box: the default failure domain, and the key of its part of the status.
    pub box_name: String,
}

impl Reconciler for TinkerbellMachineTemplateReconciler {
    fn name(&self) -> &'static str {
        "tinkerbellmachinetemplate"
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            let observed = self.observe(key).await?;
            let metadata = observed.template.metadata.clone();
            let decision = decide::decide(observed, self.clock.now());
            for step in decision.steps {
                self.apply(&metadata, step).await?;
            }
            Ok(decision.requeue)
        })
    }
}

impl TinkerbellMachineTemplateReconciler {
    async fn apply(&self, metadata: &ObjectMeta, step: Step) -> Result<(), ObjectError> {
        let objects = self.view.objects.as_ref();
        match step {
            Step::Status(status) => {
                write_status(objects, TINKERBELL_MACHINE_TEMPLATE, metadata, status.as_ref()).await
            }
            Step::Record { reason, message, warning } => {
                let event = ViewEvent { reason, message, warning, at: self.clock.now() };
                self.view.record(TINKERBELL_MACHINE_TEMPLATE, metadata, event);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
