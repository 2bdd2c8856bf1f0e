//! `tinkerbell.org` Workflow: renders it, brings its machine into the agent OS, watches the clocks,
//! and tidies up after the last action. The actions themselves are served and reported through
//! crate `agent-rpc`; the rules of that are in `api::state`.

mod again;
mod apply;
mod boot;
mod clocks;
mod decide;
mod installer;
mod observe;
mod references;
mod request;
mod rescue;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use api::meta::ObjectKey;
use api::state::agents::Agents;
pub use boot::is_post_job;
pub use clocks::Deadlines;
pub use references::References;
use stdx::Clock;
pub use turns::Turns;

use crate::ages::Ages;
use crate::runtime::{Again, Reconciled, Reconciler};
use objects::{ObjectError, Objects};

/// How long the box waits before it acts on silence.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For an agent that was heard and runs an action.
    pub agent: Duration,
    /// For a machine that was powered on and has not asked for its first action.
    pub boot: Duration,
}

/// Brings Workflows to their end.
pub struct WorkflowReconciler {
    /// The objects.
    pub objects: Arc<dyn Objects>,
    /// The agents.
    pub agents: Arc<dyn Agents>,
    /// What templates may read beside their Hardware.
    pub references: Arc<dyn References>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// How long silence is borne.
    pub patience: Patience,
    /// What each has left.
    pub deadlines: Arc<Deadlines>,
    /// Ages of the times in Workflows and their Jobs.
    pub ages: Arc<Ages>,
    /// Turns of machines.
    pub turns: Arc<Turns>,
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
            let turn = self.turns.wait(&observed.workflow).await;
            let observed = match &turn {
                // Another Workflow of the machine may have begun meanwhile.
                Some(_) => self.observe(key).await?,
                None => observed,
            };
            let mut id = || uuid::Uuid::now_v7().to_string();
            let decision = decide::decide(&observed, self.patience, self.clock.now(), &mut id);
            for step in decision.steps {
                self.apply(&observed, step).await?;
            }
            Ok(decision.again.map_or(Again::OnSignal, Again::After))
        })
    }
}

#[cfg(test)]
mod tests;
