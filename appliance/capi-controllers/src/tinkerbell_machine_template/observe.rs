//! Input of the decision about a TinkerbellMachineTemplate.

use api::infrastructure::cluster_api::{Cluster, PAUSED};
use api::infrastructure::{
    TINKERBELL_MACHINE, TINKERBELL_MACHINE_TEMPLATE, TinkerbellMachine, TinkerbellMachineTemplate,
};
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, Hardware};
use objects::{ObjectError, fetch, read};

use super::TinkerbellMachineTemplateReconciler;
use crate::tinkerbell_cluster::owner;

/// TinkerbellMachineTemplate with all other inputs of the decision.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Template to decide about.
    pub template: TinkerbellMachineTemplate,
    /// True if the watch filter selects the template.
    pub served: bool,
    /// Cluster that owns the template; `None` for a template without a Cluster.
    pub owner: Option<Cluster>,
    /// All readable Hardware of the box.
    pub hosts: Vec<Hardware>,
    /// Readable TinkerbellMachines in the namespace of the template.
    pub machines: Vec<TinkerbellMachine>,
    /// Name of the box.
    pub box_name: String,
}

impl Observed {
    /// Returns true if controllers must not change the template.
    pub fn is_paused(&self) -> bool {
        let metadata = &self.template.metadata;
        match &self.owner {
            Some(owner) => owner.spec.pauses(metadata),
            None => metadata.annotations.contains_key(PAUSED),
        }
    }
}

impl TinkerbellMachineTemplateReconciler {
    pub(super) async fn observe(&self, key: &ObjectKey) -> Result<Observed, ObjectError> {
        let objects = self.view.watched.as_ref();
        let template: TinkerbellMachineTemplate =
            fetch(objects, TINKERBELL_MACHINE_TEMPLATE, key).await?;
        let owner = owner::referenced(&self.view, &template.metadata).await?;
        let hosts = self.hardware.list(HARDWARE, None).await?;
        let machines = objects.list(TINKERBELL_MACHINE, Some(&key.namespace)).await?;
        Ok(Observed {
            served: self.view.served(&template.metadata),
            hosts: hosts.into_iter().filter_map(|host| read(host).ok()).collect(),
            machines: machines.into_iter().filter_map(|machine| read(machine).ok()).collect(),
            box_name: self.box_name.clone(),
            template,
            owner,
        })
    }
}
