//! Erase of the disks of a deleted machine before the release of its Hardware, by a Workflow with
//! the action `disk-wipe` for each disk.

use std::time::Duration;

use api::bmc::JOB;
use api::infrastructure::WipeMethod;
use api::meta::{ObjectKey, ObjectMeta};
use api::tinkerbell::{Hardware, PRESERVE_DISKS, State, TEMPLATE, WORKFLOW, Workflow};
use serde_json::Value;
use stdx::Hint as _;

use super::conditions::{READY, StatusUpdate};
use super::decide::{Decision, Step};
use super::observe::Observed;
use super::plan::boot_options;
use super::progress::progress;
use super::release::{NEXT, own_job, stop};
use machine_install::workflow::{self, InstallRequest};
use machine_install::{InstallError, template};

/// Annotation of a Hardware with the UID of the deleted TinkerbellMachine whose disks are erased.
pub const WIPED: &str = "tinbox.dev/wiped-for";
/// Annotation of a Hardware with the name of the Workflow that erases its disks. The Workflow is
/// deleted with the request for it, also if the TinkerbellMachine vanished.
pub const WIPE_WORKFLOW: &str = "tinbox.dev/wipe-workflow";
/// Annotation of a TinkerbellMachine whose Hardware is released with the data on its disks, for a
/// disk that cannot be erased.
pub const SKIP_WIPE: &str = "tinbox.dev/skip-wipe";
/// Reasons of the condition `Ready` of a machine whose disks are erased before its release.
pub const WIPING: &str = "WipingDisks";
pub const WIPE_FAILED: &str = "WipeFailed";
/// Characters of the UID in the names of Template and Workflow.
const UID_CHARS: usize = 8;
/// Interval at which the Workflow is read, independent of signals.
const FOLLOW: Duration = Duration::from_secs(60);

/// Returns name and namespace of the Template and the Workflow that erase the disks. The name has a
/// part of the UID, because a Workflow of an earlier machine with the same name proves nothing.
pub fn key(machine: &ObjectMeta, host: &Hardware) -> ObjectKey {
    let part = machine.uid.get(..UID_CHARS).unwrap_or(&machine.uid);
    ObjectKey::new(&host.metadata.namespace, format!("{}-wipe-{part}", machine.name))
}

/// Returns success if the disks are erased or may keep their data, else the next steps. `is_used`
/// is true if an installation of the machine has begun.
pub fn wipe(
    observed: &Observed,
    host: &Hardware,
    is_used: bool,
    mut update: StatusUpdate,
) -> Result<(), Decision> {
    let metadata = &observed.machine.metadata;
    let requested = WipeMethod::parse(&observed.machine.spec.wipe_on_release);
    let is_wiped = host.metadata.annotations.get(WIPED) == Some(&metadata.uid);
    let is_skipped = metadata.annotations.contains_key(SKIP_WIPE);
    let is_due = is_used && !is_wiped && !is_skipped && requested != Ok(None);
    let own = key(metadata, host).name;
    let is_other = host.metadata.annotations.get(WIPE_WORKFLOW).is_some_and(|name| *name != own);
    if let Some(mut steps) = end(host).filter(|_| !is_due || is_other) {
        if is_skipped && !is_wiped {
            let message = "the Hardware is released with the data on its disks".to_owned();
            steps.push(Step::Record { reason: "WipeSkipped", message, warning: true });
        }
        return Err(Decision { steps, requeue: Some(NEXT) });
    }
    let method = match requested {
        Ok(Some(method)) if is_due => method,
        Err(error) if is_due => {
            let message = format!("{error}; {}", skip_hint(host));
            update.put(READY, false, WIPE_FAILED, &message);
            return Err(waiting(FOLLOW, observed, update));
        }
        _ => return Ok(()),
    };
    if let Some(job) = own_job(observed) {
        // The erase was requested after the power-off, which must be repeated after the erase.
        let delete = Step::Delete(JOB, job.key());
        let steps = job.status.ended().then_some(delete).into_iter().collect();
        return Err(Decision { steps, requeue: Some(NEXT) });
    }
    let stop = stop(observed, host);
    let boots = observed.wipe.is_none() && observed.boots;
    if !stop.is_empty() || boots {
        // The status is written first: without the Workflow, only its reason shows that the machine
        // was installed.
        let message = "the installation ends before the disks are erased";
        update.put(READY, false, WIPING, message);
        let mut decision = waiting(NEXT, observed, update);
        decision.steps.extend(stop);
        return Err(decision);
    }
    Err(match &observed.wipe {
        None => start(observed, host, method, update),
        Some(workflow) => follow(observed, host, workflow, update),
    })
}

fn waiting(wait: Duration, observed: &Observed, update: StatusUpdate) -> Decision {
    Decision { requeue: Some(wait), ..Decision::default() }.with_status(observed, update)
}

/// Returns the steps that end the erase of a Hardware; `None` if none was begun.
pub fn end(host: &Hardware) -> Option<Vec<Step>> {
    let key = begun(host)?;
    let delete = |resource| Step::Delete(resource, key.clone());
    Some(vec![delete(WORKFLOW), delete(TEMPLATE), Step::ForgetWipe])
}

/// Returns name and namespace of the Template and the Workflow of an erase that was begun.
pub fn begun(host: &Hardware) -> Option<ObjectKey> {
    let name = host.metadata.annotations.get(WIPE_WORKFLOW)?;
    Some(ObjectKey::new(&host.metadata.namespace, name))
}

/// Creates Template and Workflow.
fn start(
    observed: &Observed,
    host: &Hardware,
    method: WipeMethod,
    mut update: StatusUpdate,
) -> Decision {
    let disks = disks(host);
    if host.spec.disks.is_empty() {
        let message = format!("the Hardware names no disk in spec.disks; {}", skip_hint(host));
        update.put(READY, false, WIPE_FAILED, &message);
        return waiting(FOLLOW, observed, update);
    }
    if disks.is_empty() {
        let message = format!("no disk of the Hardware {} is to be erased", host.key());
        let record = Step::Record { reason: "DisksWiped", message, warning: false };
        return Decision { steps: vec![Step::MarkWiped, record], requeue: Some(NEXT) };
    }
    let [template, workflow] = match objects(observed, host, &disks, method) {
        Ok(objects) => objects,
        Err(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            let message = format!("{}{hint}; {}", error.message(), skip_hint(host));
            update.put(READY, false, WIPE_FAILED, &message);
            return waiting(FOLLOW, observed, update);
        }
    };
    let own = key(&observed.machine.metadata, host);
    if begun(host).as_ref() != Some(&own) {
        // Named before it exists, so that no Workflow outlives the request for it.
        return Decision { steps: vec![Step::NameWipe(own.name)], requeue: Some(NEXT) };
    }
    let message = format!("the erase of {} begins: {}", host.key(), disks.join(", "));
    update.put(READY, false, WIPING, &message);
    let mut decision = waiting(FOLLOW, observed, update);
    decision.steps.extend([
        // An interrupted start may have left the Template, perhaps with other disks.
        Step::Delete(TEMPLATE, own),
        Step::Create(TEMPLATE, template),
        Step::Create(WORKFLOW, workflow),
        Step::Record { reason: "DisksWiping", message, warning: false },
    ]);
    decision
}

/// Reports the progress of the erase.
fn follow(
    observed: &Observed,
    host: &Hardware,
    workflow: &Workflow,
    mut update: StatusUpdate,
) -> Decision {
    let requeue = Some(FOLLOW);
    match workflow.status.state {
        State::Success => {
            let message = format!("the disks of the Hardware {} are erased", host.key());
            let record = Step::Record { reason: "DisksWiped", message, warning: false };
            Decision { steps: vec![Step::MarkWiped, record], requeue: Some(NEXT) }
        }
        State::Failed | State::Timeout => {
            let message = format!("{}; {}", progress(workflow, "erase").message, skip_hint(host));
            let is_new = update.reason(READY) != WIPE_FAILED;
            update.put(READY, false, WIPE_FAILED, &message);
            let record = Step::Record { reason: "WipeFailed", message, warning: true };
            let steps = is_new.then_some(record).into_iter().collect();
            Decision { steps, requeue }.with_status(observed, update)
        }
        _ => {
            let message = format!("before the release, {}", progress(workflow, "erase").message);
            update.put(READY, false, WIPING, &message);
            Decision { steps: vec![], requeue }.with_status(observed, update)
        }
    }
}

fn skip_hint(host: &Hardware) -> String {
    format!(
        "a disk in the annotation {PRESERVE_DISKS} must have the same name in spec.disks; to \
         release the Hardware {} with the data on its disks, set the annotation {SKIP_WIPE} of the \
         TinkerbellMachine",
        host.key()
    )
}

/// Returns the disks to erase: those of the Hardware, without the preserved ones. The agent also
/// refuses to erase a preserved disk that has two names.
fn disks(host: &Hardware) -> Vec<String> {
    let list = host.metadata.annotations.get(PRESERVE_DISKS).map_or("", String::as_str);
    let preserved: Vec<&str> = list.split([';', '\n']).map(str::trim).collect();
    let all = host.spec.disks.iter().map(|disk| disk.device.as_str());
    all.filter(|disk| !disk.is_empty() && !preserved.contains(disk)).map(str::to_owned).collect()
}

fn objects(
    observed: &Observed,
    host: &Hardware,
    disks: &[String],
    method: WipeMethod,
) -> Result<[Value; 2], InstallError> {
    let machine = &observed.request.machine;
    let request = InstallRequest {
        machine,
        cluster_uid: observed.request.cluster_uid.as_deref(),
        hardware: host,
        boot: &boot_options(observed, host),
    };
    let ObjectKey { name, .. } = key(&observed.machine.metadata, host);
    let text = template::wipe_data(&name, disks, method)?;
    let objects = workflow::objects(&request, &text)?;
    let (mut template, mut workflow) = (objects.template, objects.workflow);
    for object in [&mut template, &mut workflow] {
        object["metadata"]["name"] = name.clone().into();
    }
    workflow["spec"]["templateRef"] = name.into();
    Ok([template, workflow])
}
