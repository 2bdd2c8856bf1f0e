//! Bringing a machine into the agent OS and leaving no trace after, as upstream's
//! workflow controller does it.

use std::time::Duration;

use api::bmc::{Action, BootDevice, Job, OneTimeBootDevice, PowerAction};
use api::state::workflow::Event;
use api::tinkerbell::{BootMode, JobStatus, NetbootToggle, Workflow, WorkflowStatus};
use jiff::Timestamp;

use super::decide::{Decision, Step, moved, with_condition};
use super::observe::Observed;

/// The wait for a Job of an earlier Workflow to go.
const DELETE_WAIT: Duration = Duration::from_millis(200);

/// Condition of a Workflow that stands in the queue for its machine.
const WAITING: &str = "Waiting";
/// Between two looks at the Workflow ahead.
const QUEUE_WAIT: Duration = Duration::from_secs(2);

/// How far a boot Job is.
pub enum Progress {
    /// Steps are due.
    Due(Decision),
    /// It runs.
    Runs,
    /// It ended well.
    Completed,
    /// It failed, with why.
    Failed(String),
}

/// Name of the Job before the run, and the actions in it.
///
/// # Errors
/// A sentence when the boot mode cannot be carried out for this machine.
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
        Some(BootMode::Isoboot) => Err("boot mode isoboot needs virtual media, which IPMI does \
            not have; use netboot"
            .to_owned()),
    }
}

fn post_job(workflow: &Workflow) -> Option<(String, Vec<Action>)> {
    let actions = &workflow.spec.boot_options.custom.post_actions;
    let custom = workflow.spec.boot_options.boot_mode == Some(BootMode::Customboot);
    let name = format!("customboot-post-{}", workflow.metadata.name);
    (custom && !actions.is_empty()).then(|| (name, actions.clone()))
}

/// Off, next boot from the network, on: upstream's netboot Job.
pub fn netboot(observed: &Observed) -> Vec<Action> {
    let power = |action| Action { power_action: Some(action), ..Action::default() };
    let efi_boot = observed.hardware.as_ref().is_some_and(|hardware| hardware.spec.uefi());
    let boot = OneTimeBootDevice { device: vec![BootDevice::Pxe], efi_boot };
    let boot = Action { one_time_boot_device_action: Some(boot), ..Action::default() };
    vec![power(PowerAction::Off), boot, power(PowerAction::On)]
}

/// Names of every boot Job this Workflow may have made.
pub fn job_names(workflow: &Workflow) -> Vec<String> {
    let name = &workflow.metadata.name;
    let mut names = vec![
        format!("netboot-{name}"),
        format!("customboot-preparing-{name}"),
        format!("customboot-post-{name}"),
    ];
    names.extend(workflow.status.boot_options.jobs.keys().cloned());
    names.extend(super::rescue::next_name(workflow));
    names.sort();
    names.dedup();
    names
}

/// Before the run: permit network boot, then run the boot Job.
pub fn prepare(observed: &Observed, now: Timestamp) -> Decision {
    let workflow = &observed.workflow;
    let fail = |message: String| {
        let steps = moved(workflow, Event::BootFailed, "BootFailed", message.clone());
        let steps = with_step_condition(steps, "BootJobFailed", &message, now);
        Decision { steps, again: None }
    };
    if let Some(ahead) = &observed.ahead {
        let message = format!("waits until workflow {ahead} is done with the machine");
        let status = with_condition(&workflow.status, WAITING, true, "Queued", &message, now);
        let news = status != workflow.status;
        let steps = news.then(|| Step::Status(Box::new(status))).into_iter().collect();
        return Decision { steps, again: Some(QUEUE_WAIT) };
    }
    if workflow.status.conditions.iter().any(|it| it.kind == WAITING) {
        let mut status = workflow.status.clone();
        status.conditions.retain(|it| it.kind != WAITING);
        return Decision { steps: vec![Step::Status(Box::new(status))], again: None };
    }
    if observed.hardware.is_none() {
        return fail("booting a machine needs hardwareRef, and there is no such hardware".into());
    }
    if workflow.spec.boot_options.toggle_allow_netboot && !toggle(&workflow.status).toggled_true {
        return toggled(observed, true, now);
    }
    let job = match preparing_job(observed) {
        Ok(job) => job,
        Err(why) => return fail(why),
    };
    let Some((name, actions)) = job else {
        let message = "network boot is permitted".to_owned();
        let steps = moved(workflow, Event::BootPrepared, "Prepared", message);
        return Decision { steps, again: None };
    };
    match run_job(observed, &name, actions) {
        Progress::Due(decision) => decision,
        Progress::Runs => Decision::rest(),
        Progress::Failed(why) => fail(format!("boot job {name}: {why}")),
        Progress::Completed => {
            let status = completed(&workflow.status, &name, now);
            let workflow = Workflow { status, ..workflow.clone() };
            let message = "the machine was powered on to boot from the network".to_owned();
            let steps = moved(&workflow, Event::BootPrepared, "Prepared", message);
            Decision { steps, again: None }
        }
    }
}

/// After the last action: forbid network boot, then run the post Job.
pub fn finish(observed: &Observed, now: Timestamp) -> Decision {
    let workflow = &observed.workflow;
    if let Some(decision) = untoggle(observed, now) {
        return decision;
    }
    if let Some((name, actions)) = post_job(workflow) {
        match run_job(observed, &name, actions) {
            Progress::Due(decision) => return decision,
            Progress::Runs => return Decision::rest(),
            Progress::Completed | Progress::Failed(_) => {}
        }
    }
    let message = "every action succeeded".to_owned();
    Decision { steps: moved(workflow, Event::PostDone, "Succeeded", message), again: None }
}

/// After a failure too, a machine must not be left permitted to boot from the network: upstream
/// leaves it so, and the machine loops.
pub fn tidy(observed: &Observed, now: Timestamp) -> Decision {
    untoggle(observed, now).unwrap_or_else(Decision::rest)
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
    Decision { steps, again: None }
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

/// The bookkeeping of a Job that has completed.
pub fn completed(status: &WorkflowStatus, name: &str, now: Timestamp) -> WorkflowStatus {
    let message = format!("job {name} complete");
    let mut status = with_condition(status, "BootJobComplete", true, "Complete", &message, now);
    status.boot_options.jobs.entry(name.to_owned()).or_default().complete = true;
    status
}

/// Bring a Job of this Workflow into being and follow it.
pub fn run_job(observed: &Observed, name: &str, actions: Vec<Action>) -> Progress {
    let workflow = &observed.workflow;
    let job = observed.job(name);
    let ours = |job: &Job| {
        job.metadata.owner_references.iter().any(|owner| owner.uid == workflow.metadata.uid)
    };
    match job {
        Some(job) if !ours(job) => {
            let steps = vec![Step::DeleteJob(name.to_owned())];
            Progress::Due(Decision { steps, again: Some(DELETE_WAIT) })
        }
        Some(job) if job.status.is("Completed") => Progress::Completed,
        Some(job) if job.status.is("Failed") => {
            let failed = job.status.condition("Failed");
            Progress::Failed(failed.map_or_else(String::new, |it| it.message.clone()))
        }
        Some(job) if !workflow.status.boot_options.jobs.contains_key(name) => {
            // Created just before a crash: take it into the books.
            let steps = vec![Step::Status(Box::new(booked(workflow, name, &job.metadata.uid)))];
            Progress::Due(Decision { steps, again: None })
        }
        Some(_) => Progress::Runs,
        None if workflow.status.boot_options.jobs.get(name).is_some_and(|it| it.complete) => {
            Progress::Completed
        }
        None => match observed.hardware.as_ref().and_then(|it| it.spec.bmc_ref.as_ref()) {
            Some(_) => {
                let create = Step::CreateJob { name: name.to_owned(), actions };
                let status = Step::Status(Box::new(booked(workflow, name, "")));
                Progress::Due(Decision { steps: vec![create, status], again: None })
            }
            None => Progress::Failed(format!(
                "hardware {:?} has no bmcRef, so nothing can power it on",
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
