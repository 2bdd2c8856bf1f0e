//! Controller for Tasks of `bmc.tinkerbell.org`: executes one action on one BMC.
//!
//! Upstream does not check the result of most actions. This controller reports a power action as
//! completed only after the BMC confirms the state. An action that must not be repeated is recorded
//! before it is sent.

mod act;
mod decide;
mod permit;
mod shown_errors;

use std::sync::Arc;
use std::time::Duration;

use api::bmc::{BMC_ERROR, JOB, Job, RunStatus, TASK, Task};
use api::meta::ObjectKey;
use jiff::Timestamp;
use stdx::Clock;

use crate::ages::Ages;
use crate::machine::{Drivers, connect_machine};
use crate::runtime::{BMCS_AT_ONCE_MAX, Reconciled, Reconciler, Requeue};
use act::Failure;
use decide::Plan;
#[cfg(test)]
pub(crate) use decide::set_off_sent;
use objects::{ObjectError, Objects, fetch, find, write_status};
use permit::GuardedDriver;
pub use shown_errors::ShownErrors;

/// Returns the name of a Job's Task at a position (upstream rufio: `<job>-task-<index>`).
pub(crate) fn task_name(job: &str, at: usize) -> String {
    format!("{job}-task-{at}")
}

/// Returns true if the Task switches the power off and may already have done so.
pub(crate) fn may_be_off(task: &Task) -> bool {
    let takes_power = decide::plan(&task.spec.task).is_ok_and(|plan| plan.takes_power());
    takes_power && decide::may_be_off(&task.status)
}

/// Reconciler that runs Tasks until they end.
pub struct TaskReconciler {
    /// Access to Tasks, Jobs and Secrets.
    pub objects: Arc<dyn Objects>,
    /// Drivers for the management controllers.
    pub drivers: Arc<dyn Drivers>,
    /// Clock for start and completion times.
    pub clock: Arc<dyn Clock>,
    /// Time since the start of each Task.
    pub ages: Ages,
    /// Errors that running Tasks have shown.
    pub shown: ShownErrors,
}

impl Reconciler for TaskReconciler {
    fn name(&self) -> &'static str {
        "task"
    }

    fn at_once_max(&self) -> usize {
        BMCS_AT_ONCE_MAX
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            let found: Result<Task, _> = fetch(self.objects.as_ref(), TASK, key).await;
            let task = found.inspect_err(|_| self.forget(key))?;
            if task.status.ended() || task.metadata.deletion_timestamp.is_some() {
                return Ok(Requeue::OnSignal);
            }
            let Some(start) = task.status.start_time else {
                // The start is stored before any command is sent. After a crash, the Task is then
                // known to have started.
                let mut status = task.status.clone();
                status.start_time = Some(self.clock.now());
                status.set("Running", decide::BEGUN);
                return self.write(&task, status).await;
            };
            let plan = match decide::plan(&task.spec.task) {
                Ok(plan) => plan,
                Err(why) => return self.end(&task, Err(why)).await,
            };
            if let Some(why) = task.spec.connection.provider().err() {
                return self.end(&task, Err(why)).await;
            }
            if !self.is_wanted(&task, plan.takes_power() || plan.needs_mark()).await? {
                return self
                    .end(&task, Err("the Job of the Task is gone or has ended".to_owned()))
                    .await;
            }
            match self.run(&task, plan, key).await? {
                Ok(message) => self.end(&task, Ok(message)).await,
                Err(failure) => {
                    let age = self.age(key, start);
                    let Some(wait) = decide::after(&failure, age) else {
                        return self.end(&task, Err(decide::end_message(&failure, age))).await;
                    };
                    if matches!(failure, Failure::NotDone(_)) {
                        self.unmark(&task).await?;
                    }
                    if let Some(error) = failure.cause() {
                        self.show(&task, &error).await;
                    }
                    Ok(Requeue::After(wait))
                }
            }
        })
    }
}

impl TaskReconciler {
    /// Returns true if the Task's Job exists and has not ended. If the Job is being deleted, a Task
    /// must not begin to remove power, but may restore power. A Task without a Job is always
    /// wanted.
    async fn is_wanted(&self, task: &Task, takes_power: bool) -> Result<bool, ObjectError> {
        let has_begun = decide::may_be_off(&task.status) || decide::sent(&task.status);
        let owner = task.metadata.owner_references.iter().find(|owner| owner.kind == JOB.kind);
        let Some(owner) = owner else { return Ok(true) };
        let key = ObjectKey::new(&task.metadata.namespace, &owner.name);
        let job: Option<Job> = find(self.objects.as_ref(), JOB, &key).await?;
        Ok(job.is_some_and(|job| {
            let is_deleted = job.metadata.deletion_timestamp.is_some();
            let may = !takes_power || !is_deleted || has_begun;
            job.metadata.uid == owner.uid && !job.status.ended() && may
        }))
    }

    async fn run(
        &self,
        task: &Task,
        plan: Plan,
        key: &ObjectKey,
    ) -> Result<Result<String, Failure>, ObjectError> {
        let connection = &task.spec.connection;
        let objects = self.objects.as_ref();
        let machine = self.machine_of(task).await?;
        let (drivers, machine) = (self.drivers.as_ref(), machine.as_ref());
        let driver = match connect_machine(objects, drivers, connection, key, machine).await {
            Ok(driver) => driver,
            Err(why) => return Ok(Err(Failure::NotConnected(why))),
        };
        let sent = decide::sent(&task.status);
        if plan.needs_mark() && !sent {
            // The BMC must respond before the mark is written.
            if let Err(error) = driver.power().await {
                return Ok(Err(error.into()));
            }
            let mut status = task.status.clone();
            status.set("Running", decide::SENT);
            self.write(task, status).await?;
        }
        let driver = GuardedDriver { driver: driver.as_ref(), tasks: self, task, machine };
        Ok(act::act(&driver, plan, sent).await)
    }

    /// Returns the bmc Machine of the Task's Job; `None` without a Job.
    async fn machine_of(&self, task: &Task) -> Result<Option<ObjectKey>, ObjectError> {
        let owner = task.metadata.owner_references.iter().find(|owner| owner.kind == JOB.kind);
        let Some(owner) = owner else { return Ok(None) };
        let key = ObjectKey::new(&task.metadata.namespace, &owner.name);
        let job: Option<Job> = find(self.objects.as_ref(), JOB, &key).await?;
        Ok(job.map(|job| {
            let machine = &job.spec.machine_ref;
            let namespace = match machine.namespace.as_str() {
                "" => &key.namespace,
                other => other,
            };
            ObjectKey::new(namespace, &machine.name)
        }))
    }

    /// Returns the time since the start of the Task.
    fn age(&self, key: &ObjectKey, start: Timestamp) -> Duration {
        let moments = self.ages.look(key, [start], self.clock.as_ref());
        moments.since(moments.at(start))
    }

    fn forget(&self, key: &ObjectKey) {
        self.ages.forget(key);
        self.shown.forget(key);
    }

    /// Shows an error of the BMC in the status of a Task that continues. A status that cannot
    /// be written must not stop the Task.
    async fn show(&self, task: &Task, error: &str) {
        if let Err(why) = self.write_error(task, error).await {
            tracing::debug!(task = %task.key(), %error, %why, "the error is not shown");
        }
    }

    async fn write_error(&self, task: &Task, error: &str) -> Result<(), ObjectError> {
        let key = task.key();
        let is_new = self.shown.add(&key, error);
        let current: Task = fetch(self.objects.as_ref(), TASK, &key).await?;
        let is_due = match current.status.bmc_error() {
            None => true,
            Some(shown) => is_new && shown != error,
        };
        if is_due && current.metadata.uid == task.metadata.uid && !current.status.ended() {
            let mut status = current.status.clone();
            status.set(BMC_ERROR, error);
            self.write(&current, status).await?;
        }
        Ok(())
    }

    /// Removes the mark "sent": the BMC did not execute the command, which may be sent again.
    async fn unmark(&self, task: &Task) -> Result<(), ObjectError> {
        let current: Task = fetch(self.objects.as_ref(), TASK, &task.key()).await?;
        if current.metadata.uid == task.metadata.uid && !current.status.ended() {
            let mut status = current.status.clone();
            status.set("Running", decide::BEGUN);
            self.write(&current, status).await?;
        }
        Ok(())
    }

    async fn end(
        &self,
        task: &Task,
        outcome: Result<String, String>,
    ) -> Result<Requeue, ObjectError> {
        self.forget(&task.key());
        let current: Task = fetch(self.objects.as_ref(), TASK, &task.key()).await?;
        if current.metadata.uid != task.metadata.uid {
            // Another Task of this name has replaced the old one, so the result is dropped.
            return Ok(Requeue::OnSignal);
        }
        let mut status = current.status.clone();
        status.conditions.retain(|it| it.kind != "Running" && it.kind != BMC_ERROR);
        match outcome {
            Ok(message) => status.set("Completed", message),
            Err(why) => status.set("Failed", why),
        }
        status.completion_time = Some(self.clock.now());
        self.write(&current, status).await
    }

    async fn write(&self, task: &Task, status: RunStatus) -> Result<Requeue, ObjectError> {
        write_status(self.objects.as_ref(), TASK, &task.metadata, &status).await?;
        Ok(Requeue::OnSignal)
    }
}

#[cfg(test)]
mod tests;
