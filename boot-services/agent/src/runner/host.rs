//! Interface between the runner and the machine.

use std::pin::Pin;
use std::sync::Arc;

use agent_rpc::Assignment;
use imaging::Meter;

use crate::Error;
use crate::actions::{self, Action, Limits};
use crate::outcome::{Leave, Outcome};

/// Machine that the runner controls: real, an ordinary process, or simulated.
pub trait Host: Send + Sync {
    /// Returns true if the agent may restart this machine.
    fn may_leave(&self) -> bool;

    /// Flushes all disks and leaves the agent's OS. Returns only on failure.
    fn leave(&self, how: Leave) -> Result<(), Error>;

    /// Validates an action and returns its future. A simulated rack overrides this method.
    ///
    /// # Errors
    /// The assignment is invalid, or [`Error::Guest`]: the action would restart the machine, and
    /// the agent may not.
    fn act(
        &self,
        assignment: &Assignment,
        limits: &Limits,
        meter: &Arc<Meter>,
    ) -> Result<RunningAction, Error> {
        let action = Action::parse(assignment, limits.clone())?;
        if matches!(action, Action::Reboot | Action::Kexec(_)) && !self.may_leave() {
            return Err(Error::Guest);
        }
        let (assignment, meter) = (assignment.clone(), Arc::clone(meter));
        Ok(Box::pin(async move {
            actions::prepare(&assignment, &meter).await?;
            action.run(&meter).await
        }))
    }
}

/// Future of a running action. Dropping it stops the action at its next step.
pub type RunningAction = Pin<Box<dyn Future<Output = Result<Outcome, Error>> + Send>>;

/// Host of an agent that is an ordinary process and must not restart the machine.
#[derive(Debug, Clone, Copy)]
pub struct ProcessHost;

impl Host for ProcessHost {
    fn may_leave(&self) -> bool {
        false
    }

    fn leave(&self, _: Leave) -> Result<(), Error> {
        Err(Error::Stopped)
    }
}
