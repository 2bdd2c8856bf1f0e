//! Input of the decision about a TinkerbellRemediation.

use api::bmc::{JOB, Job};
use api::infrastructure::cluster_api::{Cluster, Machine};
use api::infrastructure::{
    TINKERBELL_MACHINE, TINKERBELL_REMEDIATION, TinkerbellMachine, TinkerbellRemediation,
};
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, Hardware};
use objects::{ObjectError, fetch, find};

use super::TinkerbellRemediationReconciler;
use super::decide::job_key;
use crate::tinkerbell_machine::is_registered;
use hardware_choice::HardwareRequest;

/// TinkerbellRemediation with all other inputs of the decision.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// TinkerbellRemediation to decide about.
    pub request: TinkerbellRemediation,
    /// Unique ID of the management cluster; empty for the box.
    pub cluster_uid: String,
    /// Machine with the name of the request.
    pub machine: Option<Machine>,
    /// Infrastructure of the Machine, if this box serves it.
    pub infrastructure: Option<TinkerbellMachine>,
    /// Cluster of the Machine.
    pub cluster: Option<Cluster>,
    /// Hardware that the machine owns.
    pub host: Option<Hardware>,
    /// Job of the next power cycle.
    pub job: Option<Job>,
    /// Job of the last power cycle, which the status counts.
    pub counted: Option<Job>,
}

impl TinkerbellRemediationReconciler {
    pub(super) async fn observe(&self, key: &ObjectKey) -> Result<Observed, ObjectError> {
        let objects = self.view.objects.as_ref();
        let request: TinkerbellRemediation = fetch(objects, TINKERBELL_REMEDIATION, key).await?;
        let cluster_uid = self.cluster_uid().unwrap_or_default().to_owned();
        let mut observed = Observed { request, cluster_uid, ..Observed::default() };
        observed.machine = find(objects, self.view.contract.machine(), key).await?;
        let Some(machine) = &observed.machine else { return Ok(observed) };
        let reference = machine.spec.infrastructure_ref.as_ref();
        let own = reference.filter(|it| it.kind == TINKERBELL_MACHINE.kind);
        let Some(own) = own else { return Ok(observed) };
        let infrastructure: Option<TinkerbellMachine> =
            find(objects, TINKERBELL_MACHINE, &ObjectKey::new(&key.namespace, &own.name)).await?;
        let is_own = |it: &TinkerbellMachine| {
            self.view.served(&it.metadata) && is_registered(&it.metadata, &self.box_id)
        };
        let Some(infrastructure) = infrastructure.filter(is_own) else { return Ok(observed) };
        let cluster = ObjectKey::new(&key.namespace, &machine.spec.cluster_name);
        observed.cluster = find(objects, self.view.contract.cluster(), &cluster).await?;
        observed.host = self.host(&infrastructure).await?;
        observed.infrastructure = Some(infrastructure);
        if let Some(host) = &observed.host {
            let (box_api, done) = (self.objects.as_ref(), observed.request.status.power_cycles);
            let key = |number| job_key(&observed.request.metadata, host, number);
            observed.job = find(box_api, JOB, &key(done + 1)).await?;
            observed.counted = find(box_api, JOB, &key(done)).await?;
        }
        Ok(observed)
    }

    async fn host(&self, machine: &TinkerbellMachine) -> Result<Option<Hardware>, ObjectError> {
        let owner = HardwareRequest {
            cluster_uid: self.cluster_uid().map(str::to_owned),
            ..HardwareRequest::of(machine, None, "")
        };
        let key = ObjectKey::new(&machine.status.target_namespace, &machine.spec.hardware_name);
        let host: Option<Hardware> = find(self.objects.as_ref(), HARDWARE, &key).await?;
        Ok(host.filter(|host| owner.owns(host)))
    }
}
