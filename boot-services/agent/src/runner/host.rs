//! The machine, as the runner sees it.

use std::pin::Pin;
use std::sync::Arc;

use agent_rpc::Assignment;
use imaging::Meter;

use crate::Error;
use crate::actions::{self, Action, Leave, Limits, Outcome};

/// What the runner may do to the machine it is on.
pub trait Host: Send + Sync {
    /// Whether this machine is ours to restart.
    fn may_leave(&self) -> bool;

    /// Flush everything and leave this OS. Returns only if that failed.
    fn leave(&self, how: Leave) -> Result<(), Error>;

    /// Carry out an action. One that only pretends does so in a simulated rack.
    ///
    /// # Errors
    /// When it cannot be understood, or would take away a machine that is not ours.
    fn act(
        &self,
        assignment: &Assignment,
        limits: &Limits,
        meter: &Arc<Meter>,
    ) -> Result<Acting, Error> {
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

/// An action under way; dropped, it stops at its next step.
pub type Acting = Pin<Box<dyn Future<Output = Result<Outcome, Error>> + Send>>;

/// An agent that is an ordinary process: the machine belongs to somebody else.
#[derive(Debug, Clone, Copy)]
pub struct Guest;

impl Host for Guest {
    fn may_leave(&self) -> bool {
        false
    }

    fn leave(&self, _: Leave) -> Result<(), Error> {
        Err(Error::Stopped)
    }
}
