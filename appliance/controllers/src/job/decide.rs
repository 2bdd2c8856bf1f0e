//! Which Task of a Job is next.

use std::time::Duration;

use api::bmc::{Job, Machine, RunStatus, Task, TaskSpec};
use jiff::Timestamp;

use crate::runtime::Again;

/// The wait for a Machine that does not exist yet.
const MACHINE_WAIT: Duration = Duration::from_secs(2);
/// The wait for the Task of an earlier Job to go.
const DELETE_WAIT: Duration = Duration::from_millis(100);

/// What there is.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The Job.
    pub job: Job,
    /// Its Machine.
    pub machine: Option<Machine>,
    /// Its Tasks by position.
    pub tasks: Vec<Option<Task>>,
    /// The Workflow it was made for is there and not done; true for a Job of nobody's.
    pub wanted: bool,
}

/// One thing to do.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Write the status.
    Status(RunStatus),
    /// Make the Task at this position.
    CreateTask {
        /// Position.
        at: usize,
        /// Its spec.
        spec: Box<TaskSpec>,
    },
    /// Remove a Task that an earlier Job of this name left.
    DeleteTask(String),
}

/// The steps, and when to look again.
#[derive(Debug, PartialEq)]
pub struct Decision {
    /// Steps, in order.
    pub steps: Vec<Step>,
    /// When to look again.
    pub again: Again,
}

/// Name of the Task at a position (upstream rufio: `<job>-task-<index>`).
pub fn task_name(job: &str, at: usize) -> String {
    format!("{job}-task-{at}")
}

/// What to do next for a Job.
pub fn decide(observed: &Observed, now: Timestamp) -> Decision {
    let job = &observed.job;
    if job.status.ended() || job.metadata.deletion_timestamp.is_some() {
        return Decision { steps: vec![], again: Again::OnSignal };
    }
    let end = |kind: &str, message: String| {
        let mut status = job.status.clone();
        status.start_time = status.start_time.or(Some(now));
        status.completion_time = Some(now);
        status.conditions.retain(|condition| condition.kind != "Running");
        status.set(kind, message);
        Decision { steps: vec![Step::Status(status)], again: Again::OnSignal }
    };
    if !observed.wanted {
        return end("Failed", "its workflow is gone or has ended".to_owned());
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
        return Decision { steps: strays, again: Again::After(DELETE_WAIT) };
    }
    for (at, task) in observed.tasks.iter().enumerate() {
        let Some(task) = task else {
            if observed.tasks[at..].iter().any(Option::is_some) {
                return end("Failed", format!("task {at} was removed after it was begun"));
            }
            return start(observed, at, now);
        };
        if let Some(failed) = task.status.condition("Failed").filter(|it| it.status == "True") {
            return end("Failed", format!("task {at}: {}", failed.message));
        }
        if !task.status.is("Completed") {
            return Decision { steps: vec![], again: Again::OnSignal };
        }
    }
    end("Completed", format!("{} task(s) done", observed.tasks.len()))
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
        return Decision { steps, again: Again::After(MACHINE_WAIT) };
    };
    let mut connection = machine.spec.connection.clone();
    if connection.auth_secret_ref.namespace.is_empty() {
        // The Task may stand in another namespace than its Machine.
        connection.auth_secret_ref.namespace.clone_from(&machine.metadata.namespace);
    }
    let spec = TaskSpec { task: job.spec.tasks[at].clone(), connection };
    steps.push(Step::CreateTask { at, spec: Box::new(spec) });
    let mut status = job.status.clone();
    status.start_time = status.start_time.or(Some(now));
    status.set("Running", format!("task {at} of {}", job.spec.tasks.len()));
    steps.push(Step::Status(status));
    Decision { steps, again: Again::OnSignal }
}

#[cfg(test)]
mod tests;
