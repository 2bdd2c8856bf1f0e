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
pub use boot::is_post_job;
pub use clocks::Deadlines;
pub use references::References;
use stdx::Clock;
pub use turns::Turns;

use crate::ObjectError;
use crate::ages::Ages;
use crate::objects::Objects;
use crate::runtime::{Again, Reconciled, Reconciler};

/// The last message of an agent, in moments of the steady clock ([`Clock::steady`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Moment of the last message; `None` where none is recorded.
    pub heard: Option<Duration>,
    /// An agent without a record may have been heard up to this moment, and not since: the start of
    /// the box, or the last message of the newest record that was dropped for want of room.
    pub listening_since: Duration,
    /// It says so every few seconds while an action runs, so that silence means it is gone.
    pub beats: bool,
    /// Moment of the last message of any agent.
    pub any_heard: Duration,
    /// Workflows of which an action runs, of all agents.
    pub at_work: usize,
}

/// Who was heard when. Kept in memory: after a restart of the box everybody is given fresh time.
pub trait Agents: Send + Sync + 'static {
    /// The last sign of life of an agent.
    fn life(&self, agent_id: &str) -> Life;
    /// The Workflows of a machine, ended or not, each that a reconciler was ever woken for among
    /// them; `None` where that is not known (yet), and has to be looked up.
    fn workflows_of(&self, hardware: &ObjectKey) -> Option<Vec<ObjectKey>>;
}

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
