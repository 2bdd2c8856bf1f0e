//! Boot of a machine into the agent OS, and cleanup after the run, as in upstream's controller.

use std::time::Duration;

use api::bmc::{Action, BMC_ERROR, BootDevice, Job, OneTimeBootDevice, PowerAction};
use api::state::workflow::Event;
use api::tinkerbell::{BootMode, JobStatus, NetbootToggle, State, Workflow, WorkflowStatus};
use jiff::Timestamp;

use super::decide::{Decision, Step, moved, with_condition};
use super::observe::Observed;
use super::retry::{self, Agent};

/// Wait for the deletion of a Job of an earlier Workflow.
const DELETE_WAIT: Duration = Duration::from_millis(200);

/// Condition of a Workflow after the cleanup of its machine.
const TIDIED_UP: &str = "TidiedUp";

/// Progress of a boot Job.
pub enum Progress {
    /// The decision must be executed first.
    Due(Decision),
    /// The Job is still running.
    Runs,
    /// The Job ended without an error.
    Completed,
    /// The Job failed, with the reason.
    Failed(String),
}

/// Returns name and actions of the BMC Job before the run; `None` without a boot mode.
///
/// # Errors
/// The box does not support the boot mode, as a sentence.
fn preparing_job(observed: &Observed) -> Result<Option<(String, Vec<Action>)>, String> {
    let workflow = &observed.workflow;
    let name = &workflow.metadata.name;
    match workflow.spec.boot_options.boot_mode {
        None => Ok(None),
        Some(BootMode::Netboot) => Ok(Some((format!("netboot-{name}"), netboot(observed)))),
        Some(BootMode::Customboot) => {
            let actions = workflow.spec.boot_options.custom.preparing_actions.clone();
            Ok(Some((format!("customboot-preparing-{name}"), actions)))
        }
        Some(BootMode::Isoboot) => Ok(Some((format!("iso-mount-{name}"), isoboot(observed)?))),
    }
}

/// Returns name and actions of the cleanup Job; `None` if no Job is needed.
fn post_job(workflow: &Workflow) -> Option<(String, Vec<Action>)> {
    let options = &workflow.spec.boot_options;
    let actions = match options.boot_mode {
        Some(BootMode::Isoboot) => {
            let eject = serde_json::json!({ "kind": "CD", "mediaURL": "" });
            vec![Action { virtual_media_action: Some(eject), ..Action::default() }]
        }
        Some(BootMode::Customboot) => options.custom.post_actions.clone(),
        Some(BootMode::Netboot) | None => Vec::new(),
    };
    let name = post_name(workflow)?;
    (!actions.is_empty()).then_some((name, actions))
}

/// Returns upstream's name of the cleanup Job.
fn post_name(workflow: &Workflow) -> Option<String> {
    let name = &workflow.metadata.name;
    match workflow.spec.boot_options.boot_mode? {
        BootMode::Isoboot => Some(format!("iso-eject-{name}")),
        BootMode::Customboot => Some(format!("customboot-post-{name}")),
        BootMode::Netboot => None,
    }
}

/// Returns true if `job` is the cleanup Job, the only Job of an ended Workflow.
pub fn is_post_job(workflow: &Workflow, job: &str) -> bool {
    post_name(workflow).is_some_and(|name| name == job)
}

/// Returns the actions of upstream's netboot Job: power off, network boot once, power on.
pub fn netboot(observed: &Observed) -> Vec<Action> {
    boot_once(observed, BootDevice::Pxe)
}

fn boot_once(observed: &Observed, device: BootDevice) -> Vec<Action> {
    let power = |action| Action { power_action: Some(action), ..Action::default() };
    let efi_boot = observed.hardware.as_ref().is_some_and(|hardware| hardware.spec.uefi());
    let boot = OneTimeBootDevice { device: vec![device], efi_boot };
    let boot = Action { one_time_boot_device_action: Some(boot), ..Action::default() };
    vec![power(PowerAction::Off), boot, power(PowerAction::On)]
}

/// Returns the actions of upstream's isoboot Job: power off, empty and fill the virtual drive, boot
/// from CD once, power on.
///
/// # Errors
/// The Workflow has no URL of an ISO image, as a sentence.
fn isoboot(observed: &Observed) -> Result<Vec<Action>, String> {
    let url = observed.workflow.spec.boot_options.iso_url.trim();
    if url.is_empty() {
        return Err("boot mode isoboot needs bootOptions.isoURL".to_owned());
    }
    let media = |url: &str| {
        let media = serde_json::json!({ "kind": "CD", "mediaURL": url });
        Action { virtual_media_action: Some(media), ..Action::default() }
    };
    let mut actions = boot_once(observed, BootDevice::Cdrom);
    actions.splice(1..1, [media(""), media(url)]);
    Ok(actions)
}

/// Returns the names of all boot Jobs that this Workflow may have created.
pub fn job_names(workflow: &Workflow) -> Vec<String> {
    let name = &workflow.metadata.name;
    let prefixes = ["netboot", "customboot-preparing", "iso-mount"];
    let mut names = prefixes.map(|prefix| format!("{prefix}-{name}")).to_vec();
    names.extend(post_name(workflow));
    names.extend(workflow.status.boot_options.jobs.keys().cloned());
    names.extend(super::rescue::next_name(workflow));
    names.sort();
    names.dedup();
    names
}

/// Prepares the run: permits network boot, then runs the boot Job.
pub fn prepare(observed: &Observed, now: Timestamp) -> Decision {
    let workflow = &observed.workflow;
    let fail = |message: String| {
        let steps = moved(workflow, Event::BootFailed, "BootFailed", message.clone(), now);
        let steps = with_step_condition(steps, "BootJobFailed", &message, now);
        Decision { steps, requeue: None }
    };
    if observed.hardware.is_none() {
        return fail("booting a machine needs hardwareRef, but the Hardware does not exist".into());
    }
    if workflow.spec.boot_options.toggle_allow_netboot && !toggle(&workflow.status).toggled_true {
        return toggled(observed, true, now);
    }
    let job = match preparing_job(observed) {
        Ok(job) => job,
        Err(why) => return fail(why),
    };
    let prepared = |message: &str| {
        let steps = moved(workflow, Event::BootPrepared, "Prepared", message.to_owned(), now);
        Decision { steps, requeue: None }
    };
    let Some((name, actions)) = job else { return prepared("network boot is permitted") };
    if !workflow.status.boot_options.jobs.contains_key(&name) {
        match retry::agent(observed) {
            Agent::There => {
                return prepared("the agent is running: the machine is not booted again");
            }
            Agent::Unheard(left) => return Decision::later(left),
            Agent::Gone => {}
        }
    }
    match run_job(observed, &name, actions) {
        Progress::Due(decision) => decision,
        Progress::Runs => runs(observed, &name, now),
        Progress::Failed(why) => fail(format!("boot job {name}: {why}")),
        Progress::Completed => {
            let status = completed(&workflow.status, &name, now);
            let workflow = Workflow { status, ..workflow.clone() };
            let message = "the machine was powered on to boot from the network".to_owned();
            let steps = moved(&workflow, Event::BootPrepared, "Prepared", message, now);
            Decision { steps, requeue: None }
        }
    }
}

/// Returns the steps while a boot Job runs: a condition and an event show a new error of the BMC.
pub fn runs(observed: &Observed, job: &str, now: Timestamp) -> Decision {
    let status = &observed.workflow.status;
    let error = observed.job(job).and_then(|job| job.status.bmc_error());
    if error == status.bmc_error() {
        return Decision::rest();
    }
    let steps = match error {
        Some(error) => {
            let status = with_condition(status, BMC_ERROR, true, "BmcError", error, now);
            let tell = Step::Tell { reason: "BmcError", message: error.to_owned(), warning: true };
            vec![Step::Status(Box::new(status)), tell]
        }
        None => vec![Step::Status(Box::new(without_error(status)))],
    };
    Decision { steps, requeue: None }
}

/// Returns the status without an error of the BMC, which a boot Job no longer has.
pub fn without_error(status: &WorkflowStatus) -> WorkflowStatus {
    let mut status = status.clone();
    status.conditions.retain(|it| it.kind != BMC_ERROR);
    status
}

/// Decides in the state `Post`: forbids network boot again, runs the BMC Job of the boot mode's
/// cleanup, if any, then sets the state `Success`.
pub fn finish(observed: &Observed, now: Timestamp) -> Decision {
    if let Some(decision) = tidy(observed, now) {
        return decision;
    }
    let message = "every action succeeded".to_owned();
    let steps = moved(&observed.workflow, Event::PostDone, "Succeeded", message, now);
    Decision { steps, requeue: None }
}

/// Cleans up after a run, also after a failure: the machine must not boot from the network again,
/// nor keep its boot medium. (Upstream omits the cleanup after a failure, and the machine boots in
/// a loop.) A condition records the cleanup, so that it runs once. Returns `None` if no cleanup is
/// due.
pub fn tidy(observed: &Observed, now: Timestamp) -> Option<Decision> {
    let workflow = &observed.workflow;
    let status = &workflow.status;
    if let Some(decision) = untoggle(observed, now) {
        return Some(decision);
    }
    let tidied = status.conditions.iter().any(|it| it.kind == TIDIED_UP);
    if tidied || status.state == State::Success {
        return None;
    }
    let mut trouble = None;
    let job = post_job(workflow)
        .filter(|_| status.state == State::Post || !status.boot_options.jobs.is_empty());
    let job_is_due = job.is_some();
    if let Some((name, actions)) = job {
        match run_job(observed, &name, actions) {
            Progress::Due(decision) => return Some(decision),
            Progress::Runs => return Some(Decision::rest()),
            Progress::Completed => {}
            Progress::Failed(why) => trouble = Some(format!("job {name}: {why}")),
        }
    }
    if !job_is_due && !toggle(status).toggled_true {
        return None;
    }
    let (good, reason, message) = match &trouble {
        None => (true, "Complete", "the cleanup after the run is complete"),
        Some(why) => (false, "Error", why.as_str()),
    };
    let status = with_condition(status, TIDIED_UP, good, reason, message, now);
    Some(Decision { steps: vec![Step::Status(Box::new(status))], requeue: None })
}

fn toggle(status: &WorkflowStatus) -> NetbootToggle {
    status.boot_options.allow_netboot.clone().unwrap_or_default()
}

fn untoggle(observed: &Observed, now: Timestamp) -> Option<Decision> {
    let toggle = toggle(&observed.workflow.status);
    let due = toggle.toggled_true && !toggle.toggled_false;
    (due && observed.hardware.is_some()).then(|| toggled(observed, false, now))
}

fn toggled(observed: &Observed, allow: bool, now: Timestamp) -> Decision {
    let before = &observed.workflow.status;
    let mut toggle = toggle(before);
    let (kind, message) = if allow {
        toggle.toggled_true = true;
        ("AllowNetbootTrue", "network boot permitted")
    } else {
        toggle.toggled_false = true;
        ("AllowNetbootFalse", "network boot forbidden again")
    };
    let mut status = with_condition(before, kind, true, "Complete", message, now);
    status.boot_options.allow_netboot = Some(toggle);
    let steps = vec![Step::AllowNetboot(allow), Step::Status(Box::new(status))];
    Decision { steps, requeue: None }
}

fn with_step_condition(
    mut steps: Vec<Step>,
    kind: &str,
    message: &str,
    now: Timestamp,
) -> Vec<Step> {
    if let Some(Step::Status(status)) = steps.first_mut() {
        **status = with_condition(status, kind, true, "Error", message, now);
    }
    steps
}

/// Returns the status with the completed Job recorded.
pub fn completed(status: &WorkflowStatus, name: &str, now: Timestamp) -> WorkflowStatus {
    let message = format!("job {name} complete");
    let status = &without_error(status);
    let mut status = with_condition(status, "BootJobComplete", true, "Complete", &message, now);
    status.boot_options.jobs.entry(name.to_owned()).or_default().complete = true;
    status
}

/// Returns the progress of a Job of this Workflow. Creates the Job if necessary.
pub fn run_job(observed: &Observed, name: &str, actions: Vec<Action>) -> Progress {
    let workflow = &observed.workflow;
    let job = observed.job(name);
    let ours = |job: &Job| {
        job.metadata.owner_references.iter().any(|owner| owner.uid == workflow.metadata.uid)
    };
    match job {
        // The Job is being deleted, and its name is free soon.
        Some(job) if job.metadata.deletion_timestamp.is_some() => {
            Progress::Due(Decision::later(DELETE_WAIT))
        }
        Some(job) if !ours(job) => {
            let steps = vec![Step::DeleteJob(name.to_owned())];
            Progress::Due(Decision { steps, requeue: Some(DELETE_WAIT) })
        }
        Some(job) if job.status.is("Completed") => Progress::Completed,
        Some(job) if job.status.is("Failed") => {
            let failed = job.status.condition("Failed");
            Progress::Failed(failed.map_or_else(String::new, |it| it.message.clone()))
        }
        Some(job) if !workflow.status.boot_options.jobs.contains_key(name) => {
            // The Job was created just before a crash and is recorded now.
            let steps = vec![Step::Status(Box::new(booked(workflow, name, &job.metadata.uid)))];
            Progress::Due(Decision { steps, requeue: None })
        }
        Some(_) => Progress::Runs,
        None if workflow.status.boot_options.jobs.get(name).is_some_and(|it| it.complete) => {
            Progress::Completed
        }
        None => match observed.hardware.as_ref().and_then(|it| it.spec.bmc_ref.as_ref()) {
            Some(_) => {
                let create = Step::CreateJob { name: name.to_owned(), actions };
                let status = Step::Status(Box::new(booked(workflow, name, "")));
                Progress::Due(Decision { steps: vec![create, status], requeue: None })
            }
            None => Progress::Failed(format!(
                "hardware {:?} has no bmcRef, so the box cannot power on the machine",
                workflow.spec.hardware_ref
            )),
        },
    }
}

fn booked(workflow: &Workflow, name: &str, uid: &str) -> WorkflowStatus {
    let mut status = workflow.status.clone();
    let job = JobStatus { uid: uid.to_owned(), complete: false, existing_job_deleted: true };
    status.boot_options.jobs.insert(name.to_owned(), job);
    status
}
