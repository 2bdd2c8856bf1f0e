//! Decision about the next Task of a Job.

use std::time::Duration;

use api::bmc::{BMC_ERROR, Job, Machine, PowerAction, RunStatus, Task, TaskSpec};
use jiff::Timestamp;

use crate::runtime::Requeue;
use crate::task::may_be_off;

/// Finalizer of a Job that switches a machine off and on again. If the Job is deleted after the
/// switch-off, the Job stays until the machine is on.
pub const POWER_ON: &str = "tinbox.dev/power-on";

/// Wait between two reads of a Machine that does not exist yet.
const MACHINE_WAIT: Duration = Duration::from_secs(2);
/// Retention time of a Job without an owner after its end.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Wait for the deletion of a Task of an earlier Job.
const DELETE_WAIT: Duration = Duration::from_millis(100);

/// Objects on which a decision is based.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Job to decide about.
    pub job: Job,
    /// Machine of the Job; `None` if it does not exist.
    pub machine: Option<Machine>,
    /// Tasks of the Job by position; `None` for a Task that does not exist.
    pub tasks: Vec<Option<Task>>,
    /// True if the Job has no Workflow, or its Workflow exists and needs the Job.
    pub wanted: bool,
    /// Time since the end of the Job; zero before the end.
    pub ended_for: Duration,
}

/// Step that changes one object.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Writes the status of the Job.
    Status(RunStatus),
    /// Creates a Task of the Job.
    CreateTask {
        /// Position in the Job's list of tasks.
        at: usize,
        /// Spec of the Task.
        spec: Box<TaskSpec>,
    },
    /// Deletes a Task by name that an earlier Job of the same name left.
    DeleteTask(String),
    /// Adds (true) or removes (false) the finalizer [`POWER_ON`].
    Hold(bool),
    /// Deletes the Job after its retention time.
    DeleteJob,
}

/// Steps to carry out, and the time of the next run.
#[derive(Debug, PartialEq)]
pub struct Decision {
    /// Steps in the order in which they run.
    pub steps: Vec<Step>,
    /// Time of the next run.
    pub requeue: Requeue,
}

/// Returns the next steps for a Job.
pub fn decide(observed: &Observed, now: Timestamp) -> Decision {
    let job = &observed.job;
    let is_held = job.metadata.finalizers.iter().any(|it| it == POWER_ON);
    if job.status.ended() {
        return ended(observed, is_held);
    }
    let end = |kind: &str, message: String| {
        let mut status = job.status.clone();
        status.start_time = status.start_time.or(Some(now));
        status.completion_time = Some(now);
        status.conditions.retain(|it| it.kind != "Running" && it.kind != BMC_ERROR);
        status.set(kind, message);
        Decision { steps: vec![Step::Status(status)], requeue: Requeue::OnSignal }
    };
    let is_deleted = job.metadata.deletion_timestamp.is_some();
    if (is_deleted || !observed.wanted) && !is_off(observed) {
        let why =
            if is_deleted { "the Job was deleted" } else { "the workflow is gone or has ended" };
        return end("Failed", why.to_owned());
    }
    let foreign = |task: &&Task| {
        task.metadata.owner_references.iter().all(|owner| owner.uid != job.metadata.uid)
    };
    let strays: Vec<Step> = observed
        .tasks
        .iter()
        .flatten()
        .filter(foreign)
        .map(|task| Step::DeleteTask(task.metadata.name.clone()))
        .collect();
    if !strays.is_empty() {
        return Decision { steps: strays, requeue: Requeue::After(DELETE_WAIT) };
    }
    for (at, task) in observed.tasks.iter().enumerate() {
        let Some(task) = task else {
            if observed.tasks[at..].iter().any(Option::is_some) {
                return end("Failed", format!("task {at} was removed after its start"));
            }
            if !is_held && !is_deleted && switches_off_and_on(job) {
                return Decision { steps: vec![Step::Hold(true)], requeue: Requeue::OnSignal };
            }
            if is_deleted && observed.machine.is_none() {
                return end("Failed", "the Machine was deleted".to_owned());
            }
            return start(observed, at, now);
        };
        if let Some(failed) = task.status.condition("Failed").filter(|it| it.status == "True") {
            return end("Failed", format!("task {at}: {}", failed.message));
        }
        if !task.status.is("Completed") {
            return runs(job, task);
        }
    }
    end("Completed", format!("{} task(s) done", observed.tasks.len()))
}

/// Returns the steps while a Task runs: the Job shows the same error of the BMC as the Task.
fn runs(job: &Job, task: &Task) -> Decision {
    let mut steps = Vec::new();
    let error = task.status.bmc_error();
    if error != job.status.bmc_error() {
        let mut status = job.status.clone();
        status.conditions.retain(|it| it.kind != BMC_ERROR);
        if let Some(error) = error {
            status.set(BMC_ERROR, error);
        }
        steps.push(Step::Status(status));
    }
    Decision { steps, requeue: Requeue::OnSignal }
}

/// Returns the steps for a Job that has ended. A Job without an owner is deleted after a day,
/// because no garbage collection deletes it.
fn ended(observed: &Observed, is_held: bool) -> Decision {
    let metadata = &observed.job.metadata;
    if is_held {
        return Decision { steps: vec![Step::Hold(false)], requeue: Requeue::OnSignal };
    }
    if !metadata.owner_references.is_empty() || metadata.deletion_timestamp.is_some() {
        return Decision { steps: vec![], requeue: Requeue::OnSignal };
    }
    match KEPT.saturating_sub(observed.ended_for) {
        Duration::ZERO => Decision { steps: vec![Step::DeleteJob], requeue: Requeue::OnSignal },
        left => Decision { steps: vec![], requeue: Requeue::After(left) },
    }
}

fn switches_on(action: &api::bmc::Action) -> bool {
    action.power_action == Some(PowerAction::On)
}

fn switches_off_and_on(job: &Job) -> bool {
    let takes_power =
        |it: &Option<PowerAction>| matches!(it, Some(PowerAction::Off | PowerAction::Soft));
    let off = job.spec.tasks.iter().position(|action| takes_power(&action.power_action));
    off.is_some_and(|off| job.spec.tasks[off..].iter().any(switches_on))
}

/// Returns true if this Job may have switched the machine off, and must switch it on.
fn is_off(observed: &Observed) -> bool {
    let job = &observed.job;
    let own = |task: &&Task| {
        task.metadata.owner_references.iter().any(|owner| owner.uid == job.metadata.uid)
    };
    let tasks: Vec<_> = observed.tasks.iter().map(|task| task.as_ref().filter(own)).collect();
    let off = tasks.iter().rposition(|task| task.is_some_and(may_be_off));
    off.is_some_and(|off| {
        let rest = job.spec.tasks.iter().zip(&tasks).skip(off + 1);
        rest.filter(|(action, _)| switches_on(action))
            .any(|(_, task)| task.is_none_or(|task| !task.status.ended()))
    })
}

fn start(observed: &Observed, at: usize, now: Timestamp) -> Decision {
    let job = &observed.job;
    let mut steps = Vec::new();
    let Some(machine) = &observed.machine else {
        let message = format!("waiting for machine {:?}", job.spec.machine_ref.name);
        if job.status.condition("Running").is_none_or(|running| running.message != message) {
            let mut status = job.status.clone();
            status.set("Running", message);
            steps.push(Step::Status(status));
        }
        return Decision { steps, requeue: Requeue::After(MACHINE_WAIT) };
    };
    let mut connection = machine.spec.connection.clone();
    if connection.auth_secret_ref.namespace.is_empty() {
        // The Task may be in another namespace than its Machine.
        connection.auth_secret_ref.namespace.clone_from(&machine.metadata.namespace);
    }
    let spec = TaskSpec { task: job.spec.tasks[at].clone(), connection };
    steps.push(Step::CreateTask { at, spec: Box::new(spec) });
    let mut status = job.status.clone();
    status.start_time = status.start_time.or(Some(now));
    status.conditions.retain(|it| it.kind != BMC_ERROR);
    status.set("Running", format!("task {at} of {}", job.spec.tasks.len()));
    steps.push(Step::Status(status));
    Decision { steps, requeue: Requeue::OnSignal }
}

#[cfg(test)]
mod tests;
