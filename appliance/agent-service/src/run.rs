//! A Workflow as the boot path sees it.

use api::meta::ObjectKey;
use api::state::queue::{self, Place};
use api::tinkerbell::{AUTO_ENROLLMENT, ActionState, State, Workflow};
use jiff::Timestamp;
use tokio::time::Instant;

/// The part of a Workflow that the boot path needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its uid.
    pub uid: String,
    /// Its Hardware.
    pub hardware: ObjectKey,
    /// Agents with a task in it.
    pub agents: Vec<String>,
    /// Those of them that have something left to do.
    pub awaited: Vec<String>,
    /// Its state.
    pub state: State,
    /// Its place in the queue of its machine.
    pub place: Place,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// When its last action ended.
    pub stopped: Option<Timestamp>,
    /// Nothing is begun for it, and nobody waits for it.
    pub idle: bool,
    /// An action of it runs.
    pub at_work: bool,
    /// A rule set made it.
    pub enrolled: bool,
    /// Ids of its actions that have not ended.
    pub open: Vec<String>,
    /// When this run of the box saw it succeed.
    pub succeeded: Option<Instant>,
    /// When this run of the box saw it end, well or not.
    pub ended: Option<Instant>,
}

/// The end of a machine's last installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The time of day that is stored.
    pub time: Timestamp,
    /// When this run of the box saw it; `None` for an end from before.
    pub seen: Option<Instant>,
}

impl Run {
    /// What the boot path needs of a Workflow.
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
            place: Place::of(workflow),
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

    /// Takes over what was seen of the same Workflow before.
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
