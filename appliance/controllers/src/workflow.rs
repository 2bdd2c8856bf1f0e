//! Controller for Workflows of `tinkerbell.org`: renders the template, boots the machine into the
//! agent OS, checks the timeouts, and cleans up after the last action. Crate `agent-service` serves
//! the actions and receives reports. The rules for actions are in `api::state`.

mod apply;
mod boot;
mod deadlines;
mod decide;
mod installer;
mod machine_locks;
mod observe;
mod references;
mod request;
mod rescue;
mod retry;

use std::sync::Arc;
use std::time::Duration;

use api::meta::ObjectKey;
use api::state::agents::Agents;
pub use boot::is_post_job;
pub use deadlines::Deadlines;
pub use machine_locks::MachineLocks;
pub use references::References;
use stdx::Clock;

use crate::ages::Ages;
use crate::runtime::{Reconciled, Reconciler, Requeue};
use objects::{ObjectError, Objects};

/// Timeouts for silent agents.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Maximum silence of an agent that runs an action.
    pub agent: Duration,
    /// Maximum time from power-on to the first request of the agent.
    pub boot: Duration,
}

/// Reconciler that runs Workflows until they end.
pub struct WorkflowReconciler {
    /// Access to Workflows, Templates, Hardware and Jobs.
    pub objects: Arc<dyn Objects>,
    /// Liveness of the agents.
    pub agents: Arc<dyn Agents>,
    /// Reader of the objects that templates may read in addition to their Hardware.
    pub references: Arc<dyn References>,
    /// Clock for times in the status.
    pub clock: Arc<dyn Clock>,
    /// Timeouts for silent agents and machines.
    pub timeouts: Timeouts,
    /// Remaining times of all Workflows with a time limit.
    pub deadlines: Arc<Deadlines>,
    /// Ages of the times in Workflows and their Jobs.
    pub ages: Arc<Ages>,
    /// Locks by machine, held during the start of a Workflow.
    pub locks: Arc<MachineLocks>,
}

impl Reconciler for WorkflowReconciler {
    fn name(&self) -> &'static str {
        "workflow"
    }

    fn reconcile<'a>(&'a self, key: &'a ObjectKey) -> Reconciled<'a> {
        Box::pin(async move {
            let observed = match self.observe(key).await {
                Err(error @ ObjectError::NotFound(_)) => {
                    self.deadlines.forget(key);
                    self.ages.forget(key);
                    return Err(error);
                }
                observed => observed?,
            };
            let lock = self.locks.wait(&observed.workflow).await;
            let observed = match &lock {
                // Another Workflow of the machine may have started during the wait.
                Some(_) => self.observe(key).await?,
                None => observed,
            };
            let mut id = || uuid::Uuid::now_v7().to_string();
            let decision = decide::decide(&observed, self.timeouts, self.clock.now(), &mut id);
            for step in decision.steps {
                self.apply(&observed, step).await?;
            }
            Ok(decision.requeue.map_or(Requeue::OnSignal, Requeue::After))
        })
    }
}

#[cfg(test)]
mod tests;
