//! Workflow in the form that the boot path needs.

use api::meta::ObjectKey;
use api::state::queue::{self, QueuePosition};
use api::tinkerbell::{AUTO_ENROLLMENT, ActionState, State, Workflow};
use jiff::Timestamp;
use tokio::time::Instant;

/// Fields of a Workflow that the boot path needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Uid of the Workflow.
    pub uid: String,
    /// Key of its Hardware.
    pub hardware: ObjectKey,
    /// Agents with a task in the Workflow.
    pub agents: Vec<String>,
    /// Agents that have an action left to run.
    pub awaited: Vec<String>,
    /// State of the Workflow.
    pub state: State,
    /// Place in the queue of its machine.
    pub place: QueuePosition,
    /// Time at which the Workflow was created.
    pub created: Option<Timestamp>,
    /// Time at which its last action ended.
    pub stopped: Option<Timestamp>,
    /// True if the Workflow is disabled, being deleted, or paused before its start. The box starts
    /// no action of it, and no other Workflow waits for it.
    pub idle: bool,
    /// True if one of its actions runs.
    pub at_work: bool,
    /// True if a rule set made the Workflow.
    pub enrolled: bool,
    /// Ids of its actions that have not ended.
    pub open: Vec<String>,
    /// Time at which this run of the box saw the success.
    pub succeeded: Option<Instant>,
    /// Time at which this run of the box saw the end, in success or failure.
    pub ended: Option<Instant>,
}

/// End of a machine's last installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Time of day that is stored.
    pub time: Timestamp,
    /// Time at which this run of the box saw the end; `None` for an earlier end.
    pub seen: Option<Instant>,
}

impl Run {
    /// Takes the fields from a Workflow.
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

    /// Keeps the times that an earlier version of the same Workflow had.
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
