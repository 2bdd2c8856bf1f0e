//! `bmc.tinkerbell.org` Task: carries out one action on one management controller.
//!
//! Upstream fires most actions and forgets; here power is only done when the controller confirms
//! the state, and an action that cannot be repeated is written down before it is sent.

mod act;
mod decide;

use std::sync::Arc;

use api::bmc::{JOB, Job, RunStatus, TASK, Task};
use api::meta::ObjectKey;
use stdx::Clock;

use crate::machine::{Drivers, connect};
use crate::objects::{Objects, fetch, find, write_status};
use crate::runtime::{Again, Reconciled, Reconciler};
use act::Failure;
use decide::Plan;

/// Brings Tasks to their end.
pub struct TaskReconciler {
    /// The objects.
    pub objects: Arc<dyn Objects>,
    /// The way to the controllers.
    pub drivers: Arc<dyn Drivers>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl Reconciler for TaskReconciler {
    fn name(&self) -> &'static str {
        "task"
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            let task: Task = fetch(self.objects.as_ref(), TASK, key).await?;
            if task.status.ended() || task.metadata.deletion_timestamp.is_some() {
                return Ok(Again::OnSignal);
            }
            let Some(start) = task.status.start_time else {
                // Durable before anything is sent: after a crash this Task is known to have begun.
                let mut status = task.status.clone();
                status.start_time = Some(self.clock.now());
                status.set("Running", decide::BEGUN);
                return self.write(&task, status).await;
            };
            let plan = match decide::plan(&task.spec.task) {
                Ok(plan) => plan,
                Err(why) => return self.end(&task, Err(why)).await,
            };
            if !self.is_wanted(&task).await? {
                return self.end(&task, Err("its job is gone or has ended".to_owned())).await;
            }
            match self.run(&task, plan, key).await? {
                Ok(message) => self.end(&task, Ok(message)).await,
                Err(failure) => match decide::after(&failure, start, self.clock.now()) {
                    Some(wait) => Ok(Again::After(wait)),
                    None => self.end(&task, Err(failure.to_string())).await,
                },
            }
        })
    }
}

impl TaskReconciler {
    /// The Job this Task was made for is there and not done. A Task that nobody made for a Job is
    /// wanted by whoever wrote it.
    async fn is_wanted(&self, task: &Task) -> Result<bool, crate::ObjectError> {
        let owner = task.metadata.owner_references.iter().find(|owner| owner.kind == JOB.kind);
        let Some(owner) = owner else { return Ok(true) };
        let key = ObjectKey::new(&task.metadata.namespace, &owner.name);
        let job: Option<Job> = find(self.objects.as_ref(), JOB, &key).await?;
        Ok(job.is_some_and(|job| job.metadata.uid == owner.uid && !job.status.ended()))
    }

    async fn run(
        &self,
        task: &Task,
        plan: Plan,
        key: &ObjectKey,
    ) -> Result<Result<String, Failure>, crate::ObjectError> {
        let connection = &task.spec.connection;
        let objects = self.objects.as_ref();
        let driver = match connect(objects, self.drivers.as_ref(), connection, key).await {
            Ok(driver) => driver,
            Err(why) => return Ok(Err(Failure::NotConnected(why))),
        };
        let sent = decide::sent(&task.status);
        if plan.needs_mark() && !sent {
            // Only a controller that answers can be sent anything.
            if let Err(error) = driver.power().await {
                return Ok(Err(error.into()));
            }
            let mut status = task.status.clone();
            status.set("Running", decide::SENT);
            self.write(task, status).await?;
        }
        Ok(act::act(driver.as_ref(), plan, sent).await)
    }

    async fn end(
        &self,
        task: &Task,
        outcome: Result<String, String>,
    ) -> Result<Again, crate::ObjectError> {
        let current: Task = fetch(self.objects.as_ref(), TASK, &task.key()).await?;
        if current.metadata.uid != task.metadata.uid {
            // Another Task of that name took its place meanwhile; this result is not its own.
            return Ok(Again::OnSignal);
        }
        let mut status = current.status.clone();
        status.conditions.retain(|condition| condition.kind != "Running");
        match outcome {
            Ok(message) => status.set("Completed", message),
            Err(why) => status.set("Failed", why),
        }
        status.completion_time = Some(self.clock.now());
        self.write(&current, status).await
    }

    async fn write(&self, task: &Task, status: RunStatus) -> Result<Again, crate::ObjectError> {
        write_status(self.objects.as_ref(), TASK, &task.metadata, &status).await?;
        Ok(Again::OnSignal)
    }
}

#[cfg(test)]
mod tests;
