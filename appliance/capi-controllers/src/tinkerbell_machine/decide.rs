//! Decision about a TinkerbellMachine, as a pure function of the observed objects and the time.

use std::time::Duration;

use api::infrastructure::TinkerbellMachineStatus;
use api::infrastructure::cluster_api::DELETE_FOR_MOVE;
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{Hardware, State, TEMPLATE, WORKFLOW, Workflow};
use jiff::Timestamp;
use serde_json::Value;
use stdx::Hint as _;

use super::conditions::{BOOTSTRAP, HARDWARE, INSTALLED, PAUSED, READY, StatusUpdate, addresses};
use super::observe::Observed;
use super::plan::{plan, provider_id};
use super::progress::{REPORT_AFTER, is_new_workflow, progress};
use super::{release, turn, wipe};
use hardware_choice::{choose, failure_domain};
use machine_install::{InstallError, workflow};

/// Finalizer of TinkerbellMachines and of their Hardware, as in CAPT.
pub const FINALIZER: &str = "infrastructure.cluster.x-k8s.io/tinkerbellmachine";
/// Finalizer of CAPT before version 0.7. A machine that the box took over may have it.
pub const OLD_FINALIZER: &str = "tinkerbellmachine.infrastructure.cluster.x-k8s.io";

/// Annotation of a Hardware with the UID of the TinkerbellMachine whose Workflow was created.
pub const STARTED: &str = "tinbox.dev/installation-of";
/// Annotation of a TinkerbellMachine with the ID of the only box that serves the machine.
pub const BOX: &str = "tinbox.dev/box";

/// Interval at which missing objects are read again. Most changes also signal the controller.
const WAIT: Duration = Duration::from_secs(30);
/// Interval at which a running Workflow is read, independent of signals.
const FOLLOW: Duration = Duration::from_secs(60);
/// Wait before the next step after a write that changes the input of the decision.
const NEXT: Duration = Duration::from_millis(1);

/// Decision about a TinkerbellMachine.
pub type Decision = crate::decision::Decision<Step>;

/// One step of a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Adds the finalizer to the TinkerbellMachine instead of CAPT's old one, and in a management
    /// cluster the annotation that names this box as the only one that serves the machine.
    Register,
    /// Removes the finalizer of the TinkerbellMachine.
    RemoveFinalizer,
    /// Gives the machine the Template and the Workflow of the former owner of a Hardware, and
    /// deletes the power-off Job of the former owner.
    TakeOver(Box<Hardware>),
    /// Labels an unchanged Hardware with the machine as its owner, and its management cluster.
    Claim(Box<Hardware>),
    /// Records in the Hardware another name for Template and Workflow than that of the machine.
    NameInstallation(String),
    /// Writes the user data into the Hardware of the machine.
    UserData(String),
    /// Records in the Hardware that the Workflow of the machine exists.
    MarkStarted,
    /// Records in the Hardware the name of the Workflow that erases its disks.
    NameWipe(String),
    /// Removes the name of the Workflow that erases the disks.
    ForgetWipe,
    /// Records in the Hardware that its disks were erased.
    MarkWiped,
    /// Records in the Hardware that the installation completed.
    MarkProvisioned,
    /// Removes owner, user data and network boot permission from the Hardware.
    Release,
    /// Sets `spec.hardwareName` and `spec.providerID` of the TinkerbellMachine, if unset.
    SetSpec {
        /// Name of the Hardware.
        hardware_name: String,
        /// Provider ID; empty to leave the field.
        provider_id: String,
    },
    /// Creates an object of the box. An object with its name is a conflict.
    Create(Resource, Value),
    /// Deletes an object of the box.
    Delete(Resource, ObjectKey),
    /// Replaces the status of the TinkerbellMachine.
    Status(Box<TinkerbellMachineStatus>),
    /// Records an Event about the TinkerbellMachine.
    Record {
        /// Machine-readable reason of the Event.
        reason: &'static str,
        /// Description of the Event for a person.
        message: String,
        /// True for an Event of type `Warning`.
        warning: bool,
    },
}

impl Decision {
    /// Appends a status write, if the status changed. An Event at the end is recorded after this
    /// write, because a conflict leads to the same decision again.
    pub fn with_status(mut self, observed: &Observed, update: StatusUpdate) -> Self {
        if update.status != observed.machine.status {
            let has_event = matches!(self.steps.last(), Some(Step::Record { .. }));
            let at = self.steps.len() - usize::from(has_event);
            self.steps.insert(at, Step::Status(Box::new(update.status)));
        }
        self
    }
}

/// Returns the steps that are due.
pub fn decide(observed: &Observed, now: Timestamp) -> Decision {
    let metadata = &observed.machine.metadata;
    let is_deleted = metadata.deletion_timestamp.is_some();
    let has = |finalizer: &str| metadata.finalizers.iter().any(|it| it == finalizer);
    let (has_finalizer, has_old) = (has(FINALIZER), has(OLD_FINALIZER));
    // `clusterctl move` deletes the copies that it leaves behind. The machine continues to run.
    let is_moved = metadata.annotations.contains_key(DELETE_FOR_MOVE);
    let is_ignored = !observed.served || observed.is_of_another_box();
    if is_ignored || (is_deleted && (!(has_finalizer || has_old) || is_moved)) {
        return Decision::default();
    }
    if let Some(wait) = turn::wait(observed) {
        return Decision { requeue: Some(wait), ..Decision::default() };
    }
    let mut update = StatusUpdate::new(observed, now);
    if observed.is_paused() {
        let message = "the Cluster or the machine is paused; the box changes nothing";
        update.put(PAUSED, true, "Paused", message);
        return Decision::default().with_status(observed, update);
    }
    update.put(PAUSED, false, "NotPaused", "");
    if is_deleted {
        // The Hardware of a moved machine may still have the labels of the former cluster.
        let follows = observed.hosts.iter().any(|host| observed.request.follows(host));
        return match (&observed.host, &observed.unread_former) {
            (None, _) if follows => claim(observed, update),
            (None, Some((host, error))) => release::wait_for_former(observed, host, error, update),
            (None, None) if observed.request.is_of_stock && observed.request.has_name() => {
                release::wait_for_hardware(observed, update)
            }
            _ => release::decide(observed, update),
        };
    }
    if let Some(steps) = observed.host.as_ref().and_then(wipe::end) {
        return Decision { steps, requeue: Some(NEXT) };
    }
    if let Some(host) = observed.host.as_ref().filter(|host| observed.has_old_name(host)) {
        let steps = vec![Step::Claim(Box::new(host.clone()))];
        return Decision { steps, requeue: Some(NEXT) };
    }
    let mut decision = provision(observed, update);
    let takes = |step: &Step| matches!(step, Step::Claim(_));
    let is_registered = has_finalizer && !has_old && observed.is_registered();
    let has_host = observed.host.is_some() || decision.steps.iter().any(takes);
    if !is_registered && has_host {
        decision.steps.insert(0, Step::Register);
    }
    decision
}

/// Returns the steps toward a provisioned machine.
fn provision(observed: &Observed, mut update: StatusUpdate) -> Decision {
    if observed.is_provisioned() || observed.is_adopted() {
        return match &observed.host {
            Some(host) => run(observed, host, update),
            None => claim(observed, update),
        };
    }
    if let Some((reason, message)) = missing(observed) {
        update.put(READY, false, reason, &message);
        let requeue = Some(WAIT);
        return Decision { requeue, ..Decision::default() }.with_status(observed, update);
    }
    put_bootstrap(observed, &mut update);
    let Some(host) = &observed.host else { return claim(observed, update) };
    put_hardware(observed, host, &mut update);
    match &observed.workflow {
        Some(workflow) if !observed.has(&workflow.metadata) => rename(observed, host, update),
        Some(workflow) if workflow.status.state == State::Success => run(observed, host, update),
        Some(workflow) => follow(observed, host, workflow, update),
        None => install(observed, host, update),
    }
}

/// Returns reason and message for an object that the installation waits for.
pub(super) fn missing(observed: &Observed) -> Option<(&'static str, String)> {
    let has_core = observed.management_cluster.is_some();
    let Some(owner) = &observed.owner else {
        let message = "no Machine of Cluster API refers to this TinkerbellMachine by \
                       spec.infrastructureRef";
        return Some(("WaitingForMachine", message.to_owned()));
    };
    let name = &owner.spec.cluster_name;
    if observed.cluster.is_none() && has_core {
        return Some(("WaitingForCluster", format!("the Cluster {name} does not exist")));
    }
    let is_provisioned = observed.infrastructure.as_ref().map(|it| it.status.is_provisioned());
    if is_provisioned == Some(false) || (is_provisioned.is_none() && has_core) {
        let message = format!("the infrastructure of the Cluster {name} is not provisioned yet");
        return Some(("WaitingForClusterInfrastructure", message));
    }
    let has_data = owner.spec.bootstrap.data_secret_name.is_some();
    let has_user_data = observed.machine.spec.user_data_secret.is_some();
    if !has_data && (has_core || !has_user_data) {
        let message = "the Machine has no spec.bootstrap.dataSecretName yet".to_owned();
        return Some(("WaitingForBootstrapData", message));
    }
    None
}

fn put_bootstrap(observed: &Observed, update: &mut StatusUpdate) {
    let secret = observed.owner.as_ref().and_then(|it| it.spec.bootstrap.data_secret_name.as_ref());
    match secret {
        Some(name) => update.put(BOOTSTRAP, true, "BootstrapDataReady", &format!("Secret {name}")),
        None => {
            let message = "the Machine has no bootstrap data, and this box runs no bootstrap \
                           provider; the machine is installed with its user data alone";
            update.put(BOOTSTRAP, false, "UserDataOnly", message);
        }
    }
}

fn put_hardware(observed: &Observed, host: &Hardware, update: &mut StatusUpdate) {
    if !update.is_true(HARDWARE) {
        let message = format!("the machine owns the Hardware {}", host.key());
        update.put(HARDWARE, true, "HardwareClaimed", &message);
    }
    update.status.target_namespace.clone_from(&host.metadata.namespace);
    failure_domain(host, &observed.request.box_name).clone_into(&mut update.status.failure_domain);
}

/// Chooses a Hardware and makes the machine its owner.
fn claim(observed: &Observed, mut update: StatusUpdate) -> Decision {
    let request = &observed.request;
    if let Err(error) = workflow::check_names(&request.machine, request.cluster_uid.as_deref()) {
        return failed(observed, update, error.reason(), &sentence(&error));
    }
    let choice = choose(&observed.request, &observed.hosts);
    let taken =
        choice.taken.and_then(|key| observed.hosts.iter().find(|host| host.key() == key).cloned());
    let Some(host) = taken else {
        let reason = if choice.error.is_some() { "HardwareRequestInvalid" } else { "NoHardware" };
        update.put(HARDWARE, false, reason, &choice.summary);
        return failed(observed, update, reason, &choice.summary);
    };
    update.put(HARDWARE, true, "HardwareClaimed", &choice.summary);
    update.put(READY, false, "HardwareClaimed", &choice.summary);
    put_hardware(observed, &host, &mut update);
    let claimed =
        Step::Record { reason: "HardwareClaimed", message: choice.summary, warning: false };
    let follows = observed.request.follows(&host);
    let taken_over = follows.then(|| Step::TakeOver(Box::new(host.clone())));
    let steps = taken_over.into_iter().chain([Step::Claim(Box::new(host)), claimed]).collect();
    Decision { steps, requeue: Some(NEXT) }.with_status(observed, update)
}

/// Creates the objects of the installation.
fn install(observed: &Observed, host: &Hardware, mut update: StatusUpdate) -> Decision {
    let key = workflow::key(&observed.request.machine, host);
    if observed.is_started(host) {
        let message = format!(
            "the Workflow {key} was deleted after the installation began; to install the machine \
             again, remove the annotation {STARTED} of the Hardware {}",
            host.key()
        );
        return failed(observed, update, "WorkflowMissing", &message);
    }
    if let Some(template) = &observed.template {
        if !observed.has(&template.metadata) {
            return rename(observed, host, update);
        }
        // Left over from an interrupted start, perhaps with other inputs.
        let steps = vec![Step::Delete(TEMPLATE, key)];
        return Decision { steps, requeue: Some(NEXT) }.with_status(observed, update);
    }
    let inputs = observed.inputs.clone().unwrap_or_default();
    let plan = match plan(observed, &inputs, host) {
        Ok(plan) => plan,
        Err(error) => return failed(observed, update, error.reason(), &sentence(&error)),
    };
    let message = format!("the installation on the Hardware {} begins", host.key());
    update.put(READY, false, "Installing", &message);
    update.put(INSTALLED, false, "Installing", &message);
    "Preparing".clone_into(&mut update.status.instance_state);
    let steps = vec![
        Step::UserData(plan.user_data),
        Step::Create(TEMPLATE, plan.objects.template),
        Step::Create(WORKFLOW, plan.objects.workflow),
        Step::Record { reason: "InstallationStarted", message, warning: false },
        Step::SetSpec { hardware_name: host.metadata.name.clone(), provider_id: String::new() },
    ];
    Decision { steps, requeue: Some(FOLLOW) }.with_status(observed, update)
}

/// Gives the objects of the installation another name, because an object of another machine has
/// the current one.
fn rename(observed: &Observed, host: &Hardware, update: StatusUpdate) -> Decision {
    let request = &observed.request;
    let key = workflow::key(&request.machine, host);
    let second = workflow::second_name(&request.machine, request.cluster_uid.as_deref());
    if key.name == second {
        let message = format!(
            "the Workflow or Template {key} belongs to another machine, as that with the name of \
             the machine; delete one of the two"
        );
        return failed(observed, update, "NameTaken", &message);
    }
    let own = observed.template.as_ref().filter(|template| observed.has(&template.metadata));
    let mut steps: Vec<Step> = own.map(|_| Step::Delete(TEMPLATE, key)).into_iter().collect();
    steps.push(Step::NameInstallation(second));
    Decision { steps, requeue: Some(NEXT) }.with_status(observed, update)
}

/// Reports the progress of the installation.
fn follow(
    observed: &Observed,
    host: &Hardware,
    workflow: &Workflow,
    mut update: StatusUpdate,
) -> Decision {
    let now = progress(workflow, "installation");
    let is_new = update.reason(READY) != now.reason;
    update.put(READY, false, now.reason, &now.message);
    update.put(INSTALLED, false, now.reason, &now.message);
    update.status.instance_state = now.state;
    let mut steps = vec![];
    if !observed.is_started(host) {
        steps.push(Step::MarkStarted);
    }
    if observed.machine.spec.hardware_name.is_empty() {
        let hardware_name = host.metadata.name.clone();
        steps.push(Step::SetSpec { hardware_name, provider_id: String::new() });
    }
    let has_failed = now.reason == "WorkflowFailed";
    if !has_failed && is_new_workflow(workflow, update.now()) {
        return Decision { steps, requeue: Some(REPORT_AFTER) };
    }
    if is_new && has_failed {
        let message = now.message;
        steps.push(Step::Record { reason: "InstallationFailed", message, warning: true });
    }
    Decision { steps, requeue: Some(FOLLOW) }.with_status(observed, update)
}

/// Reports a provisioned machine.
fn run(observed: &Observed, host: &Hardware, mut update: StatusUpdate) -> Decision {
    put_hardware(observed, host, &mut update);
    let spec = &observed.machine.spec;
    let mut steps = vec![];
    let annotations = &host.metadata.annotations;
    if !annotations.contains_key(api::infrastructure::PROVISIONED) {
        steps.push(Step::MarkProvisioned);
    }
    if spec.hardware_name.is_empty() || spec.provider_id.is_empty() {
        let provider_id = provider_id(observed, host);
        steps.push(Step::SetSpec { hardware_name: host.metadata.name.clone(), provider_id });
    }
    let message = match &observed.workflow {
        Some(workflow) if observed.has(&workflow.metadata) => {
            format!("the Workflow {} installed the Hardware {}", workflow.key(), host.key())
        }
        _ => format!("the machine runs on the Hardware {}", host.key()),
    };
    if !observed.machine.status.is_provisioned() {
        let message = message.clone();
        steps.push(Step::Record { reason: "Provisioned", message, warning: false });
    }
    update.put(INSTALLED, true, "Installed", &message);
    update.put(READY, true, "Provisioned", &message);
    update.status.set_provisioned();
    update.status.addresses = addresses(host);
    "Provisioned".clone_into(&mut update.status.instance_state);
    Decision { steps, requeue: None }.with_status(observed, update)
}

/// Reports an error that a person must correct, and reads the inputs again later.
fn failed(
    observed: &Observed,
    mut update: StatusUpdate,
    reason: &'static str,
    message: &str,
) -> Decision {
    let is_new = update.reason(READY) != reason;
    if !is_new && !observed.is_registered() {
        // Several boxes report the same reason for their own Hardware: the first message stays.
        return Decision { steps: vec![], requeue: Some(WAIT) };
    }
    update.put(READY, false, reason, message);
    let message = message.to_owned();
    let event = Step::Record { reason: "NotProvisioned", message, warning: true };
    let steps = is_new.then_some(event).into_iter().collect();
    Decision { steps, requeue: Some(WAIT) }.with_status(observed, update)
}

fn sentence(error: &InstallError) -> String {
    match error.hint() {
        Some(hint) => format!("{}; {hint}", error.message()),
        None => error.message(),
    }
}
