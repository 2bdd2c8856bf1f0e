//! Check if a rule set may create a workflow for a machine.

use std::sync::Arc;

use api::tinkerbell::Hardware;
use controllers::enrollment::may_enroll;

use super::Index;

impl Index {
    /// Returns true if a rule set may create a workflow for the machine.
    pub fn may_enroll(&self, hardware: &Hardware) -> bool {
        may_enroll(hardware, self.runs.concern(&hardware.key()))
    }

    /// Returns all machines, in any order.
    pub fn all_hardware(&self) -> Vec<Arc<Hardware>> {
        self.read().hardware.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use api::infrastructure::PROVISIONED;
    use api::tinkerbell::{AUTO_ENROLLMENT, Hardware, TaskStatus, Workflow};
    use controllers::enrollment::ENROLLED;

    use super::Index;

    fn workflow(name: &str, is_enrolled: bool) -> Workflow {
        let mut workflow = Workflow::default();
        workflow.metadata.name = name.to_owned();
        workflow.spec.hardware_ref = "nuc1".to_owned();
        workflow.status.tasks = vec![TaskStatus { agent_id: "x".into(), ..Default::default() }];
        if is_enrolled {
            workflow.metadata.labels.insert(AUTO_ENROLLMENT.into(), "true".into());
        }
        workflow
    }

    #[test]
    fn a_machine_is_enrolled_once_and_only_if_its_owner_says_so() {
        let index = Index::default();
        let mut hardware = Hardware::default();
        hardware.metadata.name = "nuc1".to_owned();
        assert!(!index.may_enroll(&hardware), "its owner did not say so");
        hardware.spec.auto.enrollment_enabled = true;
        assert!(index.may_enroll(&hardware));
        for key in [ENROLLED, PROVISIONED] {
            let mut other = hardware.clone();
            other.metadata.annotations.insert(key.to_owned(), "x".to_owned());
            assert!(!index.may_enroll(&other), "{key}");
        }
        index.runs.put(&workflow("mine", false));
        assert!(!index.may_enroll(&hardware), "something is to be done to it");
    }
}
