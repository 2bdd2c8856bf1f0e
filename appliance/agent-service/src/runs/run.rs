//! Workflow data that the boot services need.

use api::meta::ObjectKey;
use api::state::queue::{self, QueuePosition};
use api::tinkerbell::{AUTO_ENROLLMENT, ActionState, State, Workflow};
use jiff::Timestamp;
use tokio::time::Instant;

/// Fields of a Workflow that the boot services and the agent calls need.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// UID of the Workflow.
    pub uid: String,
    /// Key of the Workflow's Hardware.
    pub hardware: ObjectKey,
    /// IDs of agents with a task in the Workflow.
    pub agents: Vec<String>,
    /// IDs of agents with an action left to run.
    pub awaited: Vec<String>,
    /// State of the Workflow.
    pub state: State,
    /// Position in the queue of the machine.
    pub place: QueuePosition,
    /// Time at which the Workflow was created.
    pub created: Option<Timestamp>,
    /// Time at which the last ended action ended.
    pub stopped: Option<Timestamp>,
    /// True if the Workflow is disabled, being deleted, or paused before its start. The box starts
    /// none of its actions, and no other Workflow waits for it.
    pub idle: bool,
    /// True if an action of the Workflow runs.
    pub at_work: bool,
    /// True if a rule set created the Workflow.
    pub enrolled: bool,
    /// IDs of the pending and running actions.
    pub open: Vec<String>,
    /// Monotonic time of the success; `None` before it and after a restart of the box.
    pub succeeded: Option<Instant>,
    /// Monotonic time of the end (success or failure); `None` as for `succeeded`.
    pub ended: Option<Instant>,
}

/// End of the last successful workflow of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Time of day of the end, as stored.
    pub time: Timestamp,
    /// Monotonic time of the end; `None` if the end was before the last restart of the box.
    pub seen: Option<Instant>,
}

impl Run {
    /// Reads the fields of a Workflow.
    pub fn of(workflow: &Workflow) -> Self {
        let status = &workflow.status;
        let mut agents: Vec<String> =
            status.tasks.iter().map(|task| task.agent_id.clone()).collect();
        agents.dedup();
        let awaited = agents.iter().filter(|agent| queue::needs(status, agent)).cloned().collect();
        let namespace = &workflow.metadata.namespace;
        let actions = || status.tasks.iter().flat_map(|task| &task.actions);
        let is_open = |state| matches!(state, ActionState::Pending | ActionState::Running);
        Self {
            uid: workflow.metadata.uid.clone(),
            hardware: ObjectKey::new(namespace, &workflow.spec.hardware_ref),
            agents,
            awaited,
            state: status.state,
            place: QueuePosition::of(workflow),
            created: workflow.metadata.creation_timestamp,
            stopped: actions().filter_map(|action| action.execution_stop).max(),
            idle: queue::idle(workflow),
            at_work: status.state.serves()
                && actions().any(|action| action.state == ActionState::Running),
            enrolled: workflow.metadata.labels.get(AUTO_ENROLLMENT).is_some_and(|it| it == "true"),
            open: actions().filter(|it| is_open(it.state)).map(|it| it.id.clone()).collect(),
            succeeded: None,
            ended: None,
        }
    }

    /// Sets `succeeded` and `ended` from the earlier version of the Workflow, or to now if the
    /// Workflow has just ended.
    pub(crate) fn after(&mut self, before: &Self) {
        if self.state == State::Success && self.uid == before.uid {
            let had_succeeded = before.state == State::Success;
            self.succeeded = if had_succeeded { before.succeeded } else { Some(Instant::now()) };
        }
        if self.state.ended() && self.uid == before.uid {
            self.ended = if before.state.ended() { before.ended } else { Some(Instant::now()) };
        }
    }
}
