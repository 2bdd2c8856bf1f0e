//! The last check before a command that takes a machine's power away.
//!
//! A BMC that was away for minutes may answer long after a Task began, when nobody wants the
//! machine off any more. So the command's Job is looked up again right before each sending, and the
//! sending is written down: a Job that has switched its machine off goes on until it is on again.

use api::bmc::{TASK, Task};
use bmc::{BootOverride, Driver, Error, Pending, Power, PowerAction};

use super::{TaskReconciler, decide};
use objects::{ObjectError, fetch};

/// A driver that sends a command that takes power only for a Task that is still wanted.
pub struct Permitted<'a> {
    /// The driver to the machine's BMC.
    pub driver: &'a dyn Driver,
    /// The reconciler of the Task.
    pub tasks: &'a TaskReconciler,
    /// The Task that is carried out.
    pub task: &'a Task,
}

impl Permitted<'_> {
    async fn permit(&self, action: PowerAction) -> Result<(), Error> {
        let withheld = |reason: String, may_pass| Error::Withheld { action, reason, may_pass };
        let is_permitted = self.write_down().await;
        match is_permitted.map_err(|error| withheld(error.to_string(), true))? {
            true => Ok(()),
            false => Err(withheld("its job is gone or has ended".to_owned(), false)),
        }
    }

    /// Checks that the Task is wanted and writes down that its machine may be off.
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

impl Driver for Permitted<'_> {
    fn name(&self) -> &'static str {
        self.driver.name()
    }

    fn power(&self) -> Pending<'_, Power> {
        self.driver.power()
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        Box::pin(async move {
            if matches!(action, PowerAction::Off | PowerAction::Soft) {
                self.permit(action).await?;
            }
            self.driver.set_power(action).await
        })
    }

    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()> {
        self.driver.set_boot_device(boot)
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        self.driver.boot_device()
    }
}
