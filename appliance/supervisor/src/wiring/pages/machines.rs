//! Data of one machine or workflow that is not in the status view.

use std::sync::Arc;

use api::tinkerbell::{WORKFLOW, Workflow};
use machine_actions::MachineActions;
use objects::{ObjectError, Objects};
use provisioning::images::Images;
use provisioning::index::Index;
use status::log::LogLine;
use status::view::work::WorkDetails;

use crate::handlers::log_tail;

/// Number of log lines on the page of a machine.
const LOG_LINES: usize = 100;

/// Machines of the pages: their actions, logs and workflows.
pub(super) struct PageMachines {
    pub actions: MachineActions,
    pub images: Images,
    index: Index,
    syslog: Arc<syslog::Log>,
}

impl PageMachines {
    pub fn new(
        objects: &Arc<dyn Objects>,
        (index, images): (&Index, &Images),
        syslog: &Arc<syslog::Log>,
    ) -> Self {
        let actions = MachineActions { objects: Arc::clone(objects) };
        let (index, images) = (index.clone(), images.clone());
        Self { actions, images, index, syslog: Arc::clone(syslog) }
    }

    /// Returns the latest log lines of a machine, oldest first.
    pub fn log(&self, machine: &str) -> Vec<LogLine> {
        let machines = self.index.machines();
        let named = machines.iter().find(|it| it.metadata.name == machine);
        named.map(|it| log_tail(&self.syslog, &it.key(), LOG_LINES)).unwrap_or_default()
    }

    /// Returns a workflow with its actions. The index has its namespace, so that an open page reads
    /// one object at each update and not all.
    pub async fn workflow(&self, name: &str) -> Result<Option<WorkDetails>, ObjectError> {
        let courses = self.index.courses();
        let Some((key, _)) = courses.iter().find(|(key, _)| key.name == name) else {
            return Ok(None);
        };
        let found = objects::find::<Workflow>(&*self.actions.objects, WORKFLOW, key).await?;
        Ok(found.as_ref().map(WorkDetails::of))
    }
}
