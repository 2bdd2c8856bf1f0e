//! Last check before a command that switches a machine off.
//!
//! A BMC that was unreachable for minutes may respond long after the start of a Task, when the
//! command is no longer wanted. Therefore the Job is read again right before each command. The
//! command is recorded before it is sent: a Job that has switched its machine off must continue
//! until the machine is on again. Errors of the BMC that may pass are shown in the Task's status.

use api::bmc::{TASK, Task};
use api::meta::ObjectKey;
use bmc::{Driver, DriverLayer, Error, Pending, Power, PowerAction};

use super::{TaskReconciler, decide};
use objects::{ObjectError, fetch};

/// Driver that sends a power-off command only while the Task is wanted.
pub struct GuardedDriver<'a> {
    /// Driver of the machine's BMC.
    pub driver: &'a dyn Driver,
    /// Reconciler that runs the Task.
    pub tasks: &'a TaskReconciler,
    /// Task that is executed.
    pub task: &'a Task,
    /// Machine of the Task; `None` if the Task has no Job.
    pub machine: Option<&'a ObjectKey>,
}

impl GuardedDriver<'_> {
    /// Shows an error that may pass in the status of the Task at once: the caller repeats the
    /// request for a minute or more.
    async fn shown<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        let error = result.as_ref().err().filter(|it| it.is_transient());
        let error = error.map(Error::sentence);
        if let Some(error) = error {
            self.tasks.show(self.task, &error).await;
        }
        result
    }

    async fn permit(&self, action: PowerAction) -> Result<(), Error> {
        let withheld = |reason: String, may_pass| Error::Withheld { action, reason, may_pass };
        let is_permitted = self.write_down().await;
        match is_permitted.map_err(|error| withheld(error.to_string(), true))? {
            true => Ok(()),
            false => Err(withheld("the Job of the Task is gone or has ended".to_owned(), false)),
        }
    }

    /// Checks that the Task is wanted, and records that its machine may be off. Returns false if
    /// the command must not be sent.
    async fn write_down(&self) -> Result<bool, ObjectError> {
        let key = self.task.key();
        let current: Task = fetch(self.tasks.objects.as_ref(), TASK, &key).await?;
        let is_same = current.metadata.uid == self.task.metadata.uid;
        if !is_same || !self.tasks.is_wanted(&current, true).await? {
            return Ok(false);
        }
        if !decide::may_be_off(&current.status) {
            let mut status = current.status.clone();
            decide::set_off_sent(&mut status);
            self.tasks.write(&current, status).await?;
        }
        Ok(true)
    }
}

impl DriverLayer for GuardedDriver<'_> {
    fn below(&self) -> &dyn Driver {
        self.driver
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(async move { self.shown(self.driver.power().await).await })
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        Box::pin(async move {
            if matches!(action, PowerAction::Off | PowerAction::Soft) {
                self.permit(action).await?;
            }
            self.shown(self.driver.set_power(action).await).await?;
            if let (Some(machine), Some(sightings)) = (self.machine, self.tasks.drivers.sightings())
            {
                sightings.acknowledged(machine, action);
            }
            Ok(())
        })
    }
}
