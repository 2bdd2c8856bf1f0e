//! Inputs of the enrollment decision: the known machines, and the conditions for a rule set.

use std::sync::Arc;

use api::infrastructure::{OWNER_NAME, PROVISIONED};
use api::meta::ObjectKey;
use api::tinkerbell::Hardware;

/// Annotation with the Workflow that a rule set created for a machine. While the annotation exists,
/// no second Workflow is created, even if the first Workflow was deleted.
pub const ENROLLED: &str = "tinbox.dev/enrolled";

/// Index of machines and workflows, as input of the enrollment.
pub trait KnownMachines: Send + Sync + 'static {
    /// Returns the Hardware of the machine on which the agent runs; `None` if unknown.
    fn by_agent(&self, agent_id: &str) -> Option<Arc<Hardware>>;
    /// Returns the Hardware of every known machine, in any order.
    fn all_hardware(&self) -> Vec<Arc<Hardware>>;
    /// Returns true if at least one network allows enrollment.
    fn enrolls(&self) -> bool;
    /// Returns true if a Hardware or a Workflow names the agent.
    fn knows_agent(&self, agent_id: &str) -> bool;
    /// Returns true if a Workflow, ended or not, is for the machine.
    fn has_workflow(&self, hardware: &ObjectKey) -> bool;
    /// Returns true if an unfinished Workflow has a task for the agent.
    fn has_open_workflow(&self, agent_id: &str) -> bool;
}

/// Returns true if a rule set may create a Workflow for a machine: the owner allows enrollment, no
/// user has claimed the machine, and no Workflow exists or was created by a rule set before.
pub fn may_enroll(hardware: &Hardware, has_workflow: bool) -> bool {
    let metadata = &hardware.metadata;
    hardware.spec.auto.enrollment_enabled
        && !metadata.annotations.contains_key(ENROLLED)
        && !metadata.annotations.contains_key(PROVISIONED)
        && !metadata.labels.contains_key(OWNER_NAME)
        && metadata.deletion_timestamp.is_none()
        && !has_workflow
}
