//! Release of the Hardware of a deleted TinkerbellMachine: stop the installation, erase the disks
//! if the machine requires it, switch the machine off, remove the owner.

use std::time::Duration;

use api::bmc::{Action, JOB, Job, JobSpec, PowerAction, SecretRef};
use api::infrastructure::{CLUSTER_UID, MACHINE_NAME, MACHINE_NAMESPACE};
use api::meta::ObjectKey;
use api::tinkerbell::{Hardware, TEMPLATE, WORKFLOW};
use serde_json::{Value, json};

use super::conditions::{READY, StatusUpdate};
use super::decide::{Decision, Step};
use super::observe::Observed;
use super::wipe::{self, WIPE_FAILED, WIPING};
use machine_install::workflow::key;

/// Label of the power-off Job with the UID of the TinkerbellMachine, because a Job with the same
/// name may be left over from an earlier machine.
const MACHINE_UID: &str = "tinbox.dev/machine-uid";
/// Annotation of a TinkerbellMachine whose Hardware is released without power-off, for a BMC that
/// does not work.
pub const SKIP_POWER_OFF: &str = "tinbox.dev/skip-power-off";
/// Reasons of the condition `Ready` of a machine that is switched off before its release.
const POWERING_OFF: &str = "PoweringOff";
const POWER_OFF_FAILED: &str = "PowerOffFailed";
/// Interval at which the Job is read, independent of signals.
const FOLLOW: Duration = Duration::from_secs(15);
/// Wait before a failed power-off, or the read of a former management cluster, is repeated.
const RETRY: Duration = Duration::from_secs(60);
/// Wait before the next step after a write that changes the input of the decision. An object that a
/// finalizer holds is read at this interval.
pub const NEXT: Duration = Duration::from_millis(500);

/// Returns the name of the Job that switches a machine off, as in CAPT, from that of the Workflow.
pub fn job_name(workflow: &str) -> String {
    format!("{workflow}-poweroff")
}

/// Returns the next steps of the release.
pub fn decide(observed: &Observed, update: StatusUpdate) -> Decision {
    let Some(host) = &observed.host else {
        let message = "no Hardware belongs to the machine";
        return Decision { steps: vec![record(message), Step::RemoveFinalizer], requeue: None };
    };
    let is_used = is_used(observed, host, update.reason(READY));
    let is_ready = match wipe::wipe(observed, host, is_used, update.clone()) {
        Ok(()) => power_off(observed, host, is_used, update),
        Err(decision) => Err(decision),
    };
    is_ready.map_or_else(|decision| decision, |()| done(observed, host))
}

/// Keeps a deleted machine until the box knows if its Hardware belongs to another cluster.
pub fn wait_for_former(
    observed: &Observed,
    host: &ObjectKey,
    error: &str,
    mut update: StatusUpdate,
) -> Decision {
    let message = format!(
        "the Hardware {host} has the labels of a management cluster that the box cannot read: \
         {error}; if that cluster does not exist any more, unpair it, and the Hardware is released"
    );
    update.put(READY, false, "FormerClusterUnread", &message);
    Decision { requeue: Some(RETRY), ..Decision::default() }.with_status(observed, update)
}

/// Keeps a deleted machine of CAPT whose Hardware this box does not have: another box may have it.
pub fn wait_for_hardware(observed: &Observed, mut update: StatusUpdate) -> Decision {
    let annotations = &observed.machine.metadata.annotations;
    if annotations.contains_key(SKIP_POWER_OFF) {
        return decide(observed, update);
    }
    let message = format!(
        "CAPT installed the machine on a Hardware that this box does not have with the labels of \
         the machine; if no box has it, set the annotation {SKIP_POWER_OFF}, and the machine is \
         deleted without power-off"
    );
    update.put(READY, false, "HardwareMissing", &message);
    Decision { requeue: Some(RETRY), ..Decision::default() }.with_status(observed, update)
}

/// Returns true if an installation of the machine has begun, so that the machine may be on and its
/// disks may have data. `reason` is that of the condition `Ready`.
fn is_used(observed: &Observed, host: &Hardware, reason: &str) -> bool {
    observed.is_provisioned()
        || observed.is_started(host)
        || observed.has_workflow()
        || own_job(observed).is_some()
        || [POWERING_OFF, POWER_OFF_FAILED, WIPING, WIPE_FAILED].contains(&reason)
}

/// Returns success after the machine was switched off or needs no power-off, else the next steps.
fn power_off(
    observed: &Observed,
    host: &Hardware,
    is_used: bool,
    mut update: StatusUpdate,
) -> Result<(), Decision> {
    let metadata = &observed.machine.metadata;
    let skip = metadata.annotations.contains_key(SKIP_POWER_OFF);
    let Some(bmc) = host.spec.bmc_ref.as_ref().filter(|_| is_used && !skip) else {
        return Ok(());
    };
    let key = observed.power_off_key.clone();
    let message = format!("the BMC of the Hardware {} switches the machine off", host.key());
    update.put(READY, false, POWERING_OFF, &message);
    let stop = stop(observed, host);
    if !stop.is_empty() {
        // The status is written first: without the Workflow, only its reason shows that the machine
        // must be switched off. The Job follows later, so that no boot Job switches it on again.
        let mut decision = Decision::default().with_status(observed, update);
        decision.steps.extend(stop);
        return Err(Decision { requeue: Some(NEXT), ..decision });
    }
    let (step, wait) = match observed.power_off.as_ref() {
        None if observed.boots => (None, NEXT),
        None => (Some(Step::Create(JOB, job(observed, &key, &bmc.name))), FOLLOW),
        Some(job) if job.metadata.labels.get(MACHINE_UID) != Some(&metadata.uid) => {
            // The Job of another machine with this name is left until that machine is released.
            match job.status.ended() {
                true => (Some(Step::Delete(JOB, key)), NEXT),
                false => (None, FOLLOW),
            }
        }
        Some(job) if job.status.is("Completed") => return Ok(()),
        Some(job) if job.status.is("Failed") => {
            update.put(READY, false, POWER_OFF_FAILED, &failure(job, host));
            let ended = job.status.completion_time.unwrap_or_default();
            let since = Duration::try_from(update.now().duration_since(ended)).unwrap_or(RETRY);
            let left = RETRY.saturating_sub(since);
            (left.is_zero().then_some(Step::Delete(JOB, key)), left.max(NEXT))
        }
        Some(_) => (None, FOLLOW),
    };
    let steps = step.into_iter().collect();
    Err(Decision { steps, requeue: Some(wait) }.with_status(observed, update))
}

/// Returns the power-off Job of the machine itself.
pub fn own_job(observed: &Observed) -> Option<&Job> {
    let uid = &observed.machine.metadata.uid;
    observed.power_off.as_ref().filter(|job| job.metadata.labels.get(MACHINE_UID) == Some(uid))
}

fn failure(job: &Job, host: &Hardware) -> String {
    let why = job.status.condition("Failed").map_or("", |it| &it.message);
    format!(
        "the BMC of the Hardware {} did not switch the machine off: {why}; the box repeats the \
         request; to release the Hardware without power-off, set the annotation {SKIP_POWER_OFF}",
        host.key()
    )
}

/// Returns the steps that end the installation.
pub fn stop(observed: &Observed, host: &Hardware) -> Vec<Step> {
    let key = key(&observed.request.machine, host);
    let workflow = observed.workflow.as_ref().filter(|it| observed.has(&it.metadata));
    let template = observed.template.as_ref().filter(|it| observed.has(&it.metadata));
    let workflow = workflow.map(|_| Step::Delete(WORKFLOW, key.clone()));
    let template = template.map(|_| Step::Delete(TEMPLATE, key));
    workflow.into_iter().chain(template).collect()
}

fn done(observed: &Observed, host: &Hardware) -> Decision {
    let mut steps = stop(observed, host);
    if own_job(observed).is_some() {
        // Without its owner, the Job would be left over forever.
        steps.push(Step::Delete(JOB, observed.power_off_key.clone()));
    }
    steps.push(Step::Release);
    steps.push(record(&format!("the Hardware {} is free", host.key())));
    steps.push(Step::RemoveFinalizer);
    Decision { steps, requeue: None }
}

fn record(message: &str) -> Step {
    Step::Record { reason: "HardwareReleased", message: message.to_owned(), warning: false }
}

fn job(observed: &Observed, key: &ObjectKey, bmc: &str) -> Value {
    let metadata = &observed.machine.metadata;
    let off = Action { power_action: Some(PowerAction::Off), ..Action::default() };
    let machine_ref = SecretRef { name: bmc.to_owned(), namespace: key.namespace.clone() };
    let mut labels = json!({
        MACHINE_NAME: metadata.name,
        MACHINE_NAMESPACE: metadata.namespace,
        MACHINE_UID: metadata.uid,
    });
    if let Some(cluster_uid) = &observed.request.cluster_uid {
        labels[CLUSTER_UID] = json!(cluster_uid);
    }
    json!({
        "apiVersion": JOB.api_version(),
        "kind": JOB.kind,
        "metadata": { "name": key.name, "namespace": key.namespace, "labels": labels },
        "spec": JobSpec { machine_ref, tasks: vec![off] },
    })
}
