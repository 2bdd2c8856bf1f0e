//! Workflow progress for the status view. (The boot services use [`Index::runs`].)

use std::sync::Arc;

use api::meta::ObjectKey;
use api::tinkerbell::{ActionState, Workflow};
use status::view::{Power, Work};

use super::Index;

/// Progress of a workflow for the status view.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkflowProgress {
    /// State and progress of the workflow.
    pub work: Work,
    /// ID of the running action; empty if no action runs.
    pub running: String,
}

impl WorkflowProgress {
    fn of(workflow: &Workflow) -> Self {
        let mut actions = workflow.status.tasks.iter().flat_map(|task| &task.actions);
        let running = actions.find(|it| it.state == ActionState::Running);
        Self {
            work: Work::of(workflow),
            running: running.map(|it| it.id.clone()).unwrap_or_default(),
        }
    }
}

impl Index {
    /// Adds or updates a Workflow.
    pub fn put_workflow(&self, workflow: &Workflow) {
        self.runs.put(workflow);
        self.write().courses.insert(workflow.key(), Arc::new(WorkflowProgress::of(workflow)));
    }

    /// Removes a Workflow and its progress.
    pub fn remove_workflow(&self, key: &ObjectKey) {
        self.runs.remove(key);
        self.write().courses.remove(key);
    }

    /// Returns the progress of the workflow `key`; `None` if unknown.
    pub fn course(&self, key: &ObjectKey) -> Option<Arc<WorkflowProgress>> {
        self.read().courses.get(key).cloned()
    }

    /// Returns the progress of all workflows.
    pub fn courses(&self) -> Vec<(ObjectKey, Arc<WorkflowProgress>)> {
        let tables = self.read();
        tables.courses.iter().map(|(key, course)| (key.clone(), Arc::clone(course))).collect()
    }

    /// Sets the power state of a bmc Machine with its reason. Values except `on` and `off` count
    /// as unknown.
    pub fn put_power(&self, key: ObjectKey, state: Option<&str>, reason: Option<&str>) {
        let power = match state {
            Some("on") => Power::On,
            Some("off") => Power::Off,
            _ => Power::Unknown,
        };
        self.write().powers.insert(key, (power, reason.unwrap_or_default().into()));
    }

    /// Returns the last power state of the bmc Machine `key`.
    pub fn power(&self, key: &ObjectKey) -> Power {
        self.read().powers.get(key).map(|(power, _)| *power).unwrap_or_default()
    }

    /// Returns the reason of the last power state of the bmc Machine `key`; empty without one.
    pub fn power_reason(&self, key: &ObjectKey) -> Arc<str> {
        self.read().powers.get(key).map(|(_, reason)| Arc::clone(reason)).unwrap_or_default()
    }
}
