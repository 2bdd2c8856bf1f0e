//! Implementation of [`KnownMachines`] on the index, for enrollment.

use std::sync::Arc;

use api::meta::ObjectKey;
use api::tinkerbell::Hardware;
use controllers::enrollment::KnownMachines;

use crate::index::Index;

impl KnownMachines for Index {
    fn by_agent(&self, agent_id: &str) -> Option<Arc<Hardware>> {
        Index::by_agent(self, agent_id)
    }

    fn all_hardware(&self) -> Vec<Arc<Hardware>> {
        Index::all_hardware(self)
    }

    fn enrolls(&self) -> bool {
        Index::enrolls(self)
    }

    fn knows_agent(&self, agent_id: &str) -> bool {
        Index::knows_agent(self, agent_id)
    }

    fn has_workflow(&self, hardware: &ObjectKey) -> bool {
        self.runs.concern(hardware)
    }

    fn has_open_workflow(&self, agent_id: &str) -> bool {
        !self.runs.of_agent(agent_id).is_empty()
    }
}

#[cfg(test)]
mod tests;
