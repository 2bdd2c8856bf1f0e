//! What people are told of workflows, beside what the boot path needs of them.

use std::sync::Arc;

use api::meta::ObjectKey;
use api::tinkerbell::{ActionState, Workflow};
use status::view::{Power, Work};

use super::Index;

/// A workflow as people see it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    /// How far it is.
    pub work: Work,
    /// Id of the action that runs; empty when none does.
    pub running: String,
}

impl Course {
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
    /// Take a Workflow in, or its new version.
    pub fn put_workflow(&self, workflow: &Workflow) {
        self.runs.put(workflow);
        self.write().courses.insert(workflow.key(), Arc::new(Course::of(workflow)));
    }

    /// Forget a Workflow.
    pub fn remove_workflow(&self, key: &ObjectKey) {
        self.runs.remove(key);
        self.write().courses.remove(key);
    }

    /// How far a workflow is.
    pub fn course(&self, key: &ObjectKey) -> Option<Arc<Course>> {
        self.read().courses.get(key).cloned()
    }

    /// All of them.
    pub fn courses(&self) -> Vec<(ObjectKey, Arc<Course>)> {
        let tables = self.read();
        tables.courses.iter().map(|(key, course)| (key.clone(), Arc::clone(course))).collect()
    }

    /// Remember what a management controller says of its machine's power.
    pub fn put_power(&self, key: ObjectKey, state: Option<&str>) {
        let power = match state {
            Some("on") => Power::On,
            Some("off") => Power::Off,
            _ => Power::Unknown,
        };
        self.write().powers.insert(key, power);
    }

    /// Whether a machine is on, by the bmc Machine of this name.
    pub fn power(&self, key: &ObjectKey) -> Power {
        self.read().powers.get(key).copied().unwrap_or_default()
    }
}
