//! `bmc.tinkerbell.org` Task: carries out one action on one management controller.
//!
//! Upstream fires most actions and forgets; here power is only done when the controller confirms
//! the state, and an action that cannot be repeated is written down before it is sent.

mod act;
mod decide;

use std::sync::Arc;

use api::bmc::{RunStatus, TASK, Task};
use api::meta::ObjectKey;
use stdx::Clock;

use crate::machine::{Drivers, connect};
use crate::objects::{Objects, fetch, write_status};
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
            if plan.needs_mark() && !decide::sent(&task.status) {
                let mut status = task.status.clone();
                status.set("Running", decide::SENT);
                self.write(&task, status).await?;
            }
            match self.run(&task, plan, key).await {
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
    async fn run(&self, task: &Task, plan: Plan, key: &ObjectKey) -> Result<String, Failure> {
        let connection = &task.spec.connection;
        let driver = connect(self.objects.as_ref(), self.drivers.as_ref(), connection, key)
            .await
            .map_err(Failure::NotConnected)?;
        act::act(driver.as_ref(), plan, decide::sent(&task.status)).await
    }

    async fn end(
        &self,
        task: &Task,
        outcome: Result<String, String>,
    ) -> Result<Again, crate::ObjectError> {
        let current: Task = fetch(self.objects.as_ref(), TASK, &task.key()).await?;
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
