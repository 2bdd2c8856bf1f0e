//! Input of the decision about a TinkerbellMachine.

mod inputs;

use std::time::{Duration, Instant};

use api::bmc::{JOB, Job, PowerAction};
use api::infrastructure::cluster_api::{self, Cluster, Machine};
use api::infrastructure::{
    MANAGEMENT_CLUSTER_NAME, PROVISIONED, TINKERBELL_CLUSTER, TINKERBELL_MACHINE,
    TinkerbellCluster, TinkerbellMachine,
};
use api::meta::{ObjectKey, ObjectMeta};
use api::tinkerbell::{HARDWARE, Hardware, TEMPLATE, Template, WORKFLOW, Workflow};
use objects::{ObjectError, fetch, find, read};

pub use self::inputs::{Inputs, Values};
use super::TinkerbellMachineReconciler;
use super::decide::{BOX, FINALIZER, OLD_FINALIZER, STARTED, missing};
use super::live_reads::LiveReads;
use super::turn;
use crate::ClusterIdentity;
use hardware_choice::{self, HardwareRequest};
use machine_install::workflow;

/// TinkerbellMachine with all other inputs of the decision.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// TinkerbellMachine to decide about.
    pub machine: TinkerbellMachine,
    /// Management cluster that has the machine; `None` for the box.
    pub management_cluster: Option<ClusterIdentity>,
    /// True if the box must serve the machine, by the watch filter.
    pub served: bool,
    /// Machine of Cluster API that has the TinkerbellMachine; `None` if none refers to it.
    pub owner: Option<Machine>,
    /// Cluster of the machine; `None` if it does not exist.
    pub cluster: Option<Cluster>,
    /// Infrastructure of the Cluster; `None` if it does not exist.
    pub infrastructure: Option<TinkerbellCluster>,
    /// ID of this box.
    pub box_id: String,
    /// Time for which the machine has waited for another box; zero for a machine of this box.
    pub waited: Duration,
    /// Requirements on the Hardware.
    pub request: HardwareRequest,
    /// Hardware to choose from; only the Hardware of the machine, if it has one.
    pub hosts: Vec<Hardware>,
    /// Hardware that the machine owns.
    pub host: Option<Hardware>,
    /// Workflow with the name of the machine's, which may belong to another machine.
    pub workflow: Option<Workflow>,
    /// Template with the name of the machine's; read only before an installation or a release.
    pub template: Option<Template>,
    /// True if a Job of the machine's Workflow runs; read only before a release.
    pub boots: bool,
    /// Job with the name `power_off_key`, which may belong to another machine; read only before a
    /// release.
    pub power_off: Option<Job>,
    /// Key of the Job that switches the machine off; read only before a release.
    pub power_off_key: ObjectKey,
    /// Workflow that erases the disks; read only before a release.
    pub wipe: Option<Workflow>,
    /// Hardware that follows the machine, unless a management cluster that the box cannot read has
    /// the machine too; with the error.
    pub unread_former: Option<(ObjectKey, String)>,
    /// Inputs of the installation; `None` unless an installation is due.
    pub inputs: Option<Inputs>,
}

impl Observed {
    /// Returns true if the box must not change the machine: the machine or the Cluster is paused.
    pub fn is_paused(&self) -> bool {
        let spec = self.cluster.as_ref().map(|cluster| &cluster.spec);
        spec.unwrap_or(&cluster_api::ClusterSpec::default()).pauses(&self.machine.metadata)
    }

    /// Returns true if an installation of the machine has completed once.
    pub fn is_provisioned(&self) -> bool {
        let annotations = self.host.as_ref().map(|host| &host.metadata.annotations);
        self.machine.status.is_provisioned()
            || annotations.is_some_and(|it| it.contains_key(PROVISIONED))
    }

    /// Returns true if the machine must be adopted without an installation. `spec.providerID` is
    /// written by the box after an installation, or by a person; with the name of the machine
    /// itself, a new machine has it too. Cluster API writes that of the Machine after an
    /// installation.
    pub fn is_adopted(&self) -> bool {
        let has_node = |owner: &Machine| owner.spec.provider_id.is_some();
        let has_id = !self.request.provider_id.is_empty() && !self.request.has_own_id();
        has_id || self.owner.as_ref().is_some_and(has_node)
    }

    /// Returns true if this box is known as the only one that serves the machine. The API of a box
    /// has only one box.
    pub fn is_registered(&self) -> bool {
        let metadata = &self.machine.metadata;
        self.management_cluster.is_none() || super::is_registered(metadata, &self.box_id)
    }

    /// Returns true if another box serves the machine.
    pub fn is_of_another_box(&self) -> bool {
        self.machine.metadata.annotations.contains_key(BOX) && !self.is_registered()
    }

    /// Returns true for a machine of CAPT, the stock provider, that no box has adopted: a box
    /// registers itself together with the finalizer.
    pub fn is_of_stock(&self) -> bool {
        let metadata = &self.machine.metadata;
        let is_ours = |it: &String| it == FINALIZER || it == OLD_FINALIZER;
        self.management_cluster.is_some()
            && !metadata.annotations.contains_key(BOX)
            && metadata.finalizers.iter().any(is_ours)
    }

    /// Returns true if a Workflow of the machine was created for `host`.
    pub fn is_started(&self, host: &Hardware) -> bool {
        host.metadata.annotations.get(STARTED) == Some(&self.machine.metadata.uid)
    }

    /// Returns true for an object with the labels of the machine.
    pub fn has(&self, metadata: &ObjectMeta) -> bool {
        workflow::is_of(metadata, &self.request.machine, self.request.cluster_uid.as_deref())
    }

    /// Returns true if the Workflow exists and belongs to the machine.
    pub fn has_workflow(&self) -> bool {
        self.workflow.as_ref().is_some_and(|workflow| self.has(&workflow.metadata))
    }

    /// Returns true if `host` has another name of the management cluster, which was paired again.
    pub fn has_old_name(&self, host: &Hardware) -> bool {
        let name = self.management_cluster.as_ref().map(|cluster| &cluster.name);
        host.metadata.annotations.get(MANAGEMENT_CLUSTER_NAME) != name
    }
}

impl TinkerbellMachineReconciler {
    pub(super) async fn observe(
        &self,
        key: &ObjectKey,
        live: LiveReads,
    ) -> Result<Observed, ObjectError> {
        let api = |is_live| if is_live { &self.view.objects } else { &self.view.watched };
        let objects = api(live.machine).as_ref();
        let machine: TinkerbellMachine = fetch(objects, TINKERBELL_MACHINE, key).await?;
        let mut observed =
            Observed { served: self.view.served(&machine.metadata), ..Observed::default() };
        observed.management_cluster.clone_from(&self.view.cluster);
        observed.box_id.clone_from(&self.box_id);
        observed.machine = machine;
        if !observed.served || observed.is_of_another_box() {
            self.waiting.forget(key);
            return Ok(observed);
        }
        observed.owner = self.owner(&observed.machine).await?;
        let label = observed.machine.metadata.labels.get(cluster_api::CLUSTER_NAME);
        let name = observed.owner.as_ref().map(|owner| &owner.spec.cluster_name).or(label);
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            let key = ObjectKey::new(&key.namespace, name);
            let objects = api(live.cluster).as_ref();
            observed.cluster = find(objects, self.view.contract.cluster(), &key).await?;
        }
        observed.infrastructure = self.infrastructure(observed.cluster.as_ref()).await?;
        let domain = observed.owner.as_ref().and_then(|owner| owner.spec.failure_domain.as_deref());
        observed.request = HardwareRequest {
            cluster_uid: self.view.cluster.as_ref().map(|cluster| cluster.uid.clone()),
            is_of_stock: observed.is_of_stock(),
            ..HardwareRequest::of(&observed.machine, domain, &self.box_name)
        };
        observed.waited = self.waited(&observed, key);
        if observed.is_paused() || turn::is_of_other_boxes(&observed) {
            return Ok(observed);
        }
        observed.hosts = self.hosts(&observed).await?;
        observed.host = observed.hosts.iter().find(|host| observed.request.owns(host)).cloned();
        match observed.host.clone() {
            Some(host) => self.observe_host(&mut observed, &host).await?,
            None => self.observe_former(&mut observed).await,
        }
        Ok(observed)
    }

    /// Returns the time since which a machine without a box could have been installed.
    fn waited(&self, observed: &Observed, machine: &ObjectKey) -> Duration {
        if observed.is_registered() {
            self.waiting.forget(machine);
            return Duration::ZERO;
        }
        let uid = &observed.machine.metadata.uid;
        self.waiting.time(machine, uid, missing(observed).is_none(), Instant::now())
    }

    /// Reads the Hardware that the machine has just claimed, and its objects.
    pub(super) async fn observe_claimed(
        &self,
        observed: &mut Observed,
        key: &ObjectKey,
    ) -> Result<(), ObjectError> {
        let host: Hardware = fetch(self.objects.as_ref(), HARDWARE, key).await?;
        observed.hosts = vec![host.clone()];
        observed.host = Some(host.clone());
        self.observe_host(observed, &host).await
    }

    /// Asks the management clusters whose labels a moved machine's Hardware still has.
    async fn observe_former(&self, observed: &mut Observed) {
        let key = observed.request.machine.clone();
        for host in &observed.hosts {
            let request = &observed.request;
            if !request.may_follow(host) && !request.is_labeled_by_stock(host) {
                continue;
            }
            let uid = hardware_choice::cluster_uid(host).unwrap_or_default();
            match self.clusters.has_machine(uid, &key).await {
                Ok(false) => continue,
                Ok(true) => {}
                Err(error) => {
                    observed.unread_former = Some((host.key(), error.to_string()));
                }
            }
            observed.request.clusters.insert(uid.to_owned());
        }
    }

    /// Reads the objects that the machine has on its Hardware.
    async fn observe_host(
        &self,
        observed: &mut Observed,
        host: &Hardware,
    ) -> Result<(), ObjectError> {
        let objects = self.objects.as_ref();
        let key = workflow::key(&observed.request.machine, host);
        observed.workflow = find(objects, WORKFLOW, &key).await?;
        if observed.machine.metadata.deletion_timestamp.is_some() {
            observed.template = find(objects, TEMPLATE, &key).await?;
            let wipe = super::wipe::key(&observed.machine.metadata, host);
            observed.wipe = find(objects, WORKFLOW, &wipe).await?;
            (observed.power_off_key, observed.power_off) = self.power_off(observed, &key).await?;
            observed.boots = self.boots(observed, host, [&key.name, &wipe.name]).await?;
        } else if !observed.has_workflow() && !observed.is_provisioned() {
            observed.template = find(objects, TEMPLATE, &key).await?;
            observed.inputs = Some(self.inputs(observed, host).await?);
        }
        Ok(())
    }

    /// Returns the Job that switches the machine off, and its key: the Job of the machine if it
    /// exists, else the first of two names that is free. `key` is that of the Workflow.
    async fn power_off(
        &self,
        observed: &Observed,
        key: &ObjectKey,
    ) -> Result<(ObjectKey, Option<Job>), ObjectError> {
        let request = &observed.request;
        let second = workflow::second_name(&request.machine, request.cluster_uid.as_deref());
        let mut found = Vec::new();
        for name in [&key.name, &second] {
            let key = ObjectKey::new(&key.namespace, super::release::job_name(name));
            let job: Option<Job> = find(self.objects.as_ref(), JOB, &key).await?;
            found.push((key, job));
        }
        let rank = |job: &Option<Job>| match job {
            Some(job) if observed.has(&job.metadata) => 0,
            None => 1,
            Some(_) => 2,
        };
        // The first of two with the same rank.
        let best = found.into_iter().min_by_key(|(_, job)| rank(job));
        Ok(best.unwrap_or_default())
    }

    /// Returns true if a Job that may switch the machine on has not ended: of one of the Workflows,
    /// or for the BMC of the Hardware, such as that of a TinkerbellRemediation.
    async fn boots(
        &self,
        observed: &Observed,
        host: &Hardware,
        workflows: [&str; 2],
    ) -> Result<bool, ObjectError> {
        let namespace = &host.metadata.namespace;
        let bmc = host.spec.bmc_ref.as_ref().map(|bmc| &bmc.name);
        let all = self.objects.list(JOB, Some(namespace)).await?;
        let jobs = all.into_iter().filter_map(|object| read::<Job>(object).ok());
        let is_near = |job: &Job| {
            let mut owners = job.metadata.owner_references.iter();
            job.metadata.namespace == *namespace
                && job.key() != observed.power_off_key
                && (Some(&job.spec.machine_ref.name) == bmc && switches_on(job)
                    || owners.any(|owner| {
                        owner.kind == WORKFLOW.kind && workflows.contains(&owner.name.as_str())
                    }))
        };
        Ok(jobs.filter(is_near).any(|job| !job.status.ended()))
    }

    /// Returns the Machine that has the TinkerbellMachine. Cluster API writes an owner reference.
    /// The box runs no controllers of Cluster API, so there the reference in the Machine decides.
    async fn owner(&self, machine: &TinkerbellMachine) -> Result<Option<Machine>, ObjectError> {
        let (objects, resource) = (self.view.watched.as_ref(), self.view.contract.machine());
        let metadata = &machine.metadata;
        let is_machine = |kind: &str, api_version: &str| {
            kind == resource.kind && api_version.starts_with("cluster.x-k8s.io/")
        };
        let references = &metadata.owner_references;
        if let Some(owner) = references.iter().find(|it| is_machine(&it.kind, &it.api_version)) {
            return find(objects, resource, &ObjectKey::new(&metadata.namespace, &owner.name))
                .await;
        }
        if self.view.cluster.is_some() {
            return Ok(None);
        }
        let all = objects.list(resource, Some(&metadata.namespace)).await?;
        let all = all.into_iter().filter_map(|object| read::<Machine>(object).ok());
        let mut all = all.filter(|it| it.metadata.namespace == metadata.namespace);
        Ok(all.find(|it| {
            let reference = it.spec.infrastructure_ref.as_ref();
            reference.is_some_and(|to| {
                to.refers_to(&it.metadata.namespace, TINKERBELL_MACHINE, metadata)
            })
        }))
    }

    async fn infrastructure(
        &self,
        cluster: Option<&Cluster>,
    ) -> Result<Option<TinkerbellCluster>, ObjectError> {
        let Some(cluster) = cluster else { return Ok(None) };
        let reference = cluster.spec.infrastructure_ref.as_ref();
        let own = reference.filter(|it| it.kind == TINKERBELL_CLUSTER.kind);
        let Some(own) = own else { return Ok(None) };
        let key = ObjectKey::new(&cluster.metadata.namespace, &own.name);
        find(self.view.watched.as_ref(), TINKERBELL_CLUSTER, &key).await
    }

    /// Returns the Hardware to choose from. A machine that owns its recorded Hardware needs no
    /// list. Hardware that the box cannot read is left out.
    pub(super) async fn hosts(&self, observed: &Observed) -> Result<Vec<Hardware>, ObjectError> {
        let (objects, machine) = (self.objects.as_ref(), &observed.machine);
        let (namespace, name) = (&machine.status.target_namespace, &machine.spec.hardware_name);
        if !namespace.is_empty() && !name.is_empty() {
            let key = ObjectKey::new(namespace, name);
            let host: Option<Hardware> = find(objects, HARDWARE, &key).await?;
            if let Some(host) = host.filter(|host| observed.request.owns(host)) {
                return Ok(vec![host]);
            }
        }
        let all = objects.list(HARDWARE, None).await?;
        Ok(all.into_iter().filter_map(|object| read(object).ok()).collect())
    }
}

/// Returns true if a task of the Job switches the machine on.
fn switches_on(job: &Job) -> bool {
    let on = [PowerAction::On, PowerAction::Cycle, PowerAction::Reset];
    let mut actions = job.spec.tasks.iter().filter_map(|task| task.power_action);
    actions.any(|action| on.contains(&action))
}
