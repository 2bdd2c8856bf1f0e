//! The facts that enrollment is decided by: the report of an agent, and the known machines.

use std::sync::Arc;

use api::meta::ObjectKey;
use api::tinkerbell::Hardware;

/// Annotation that says which workflow a rule set made for a machine: no second one is made while
/// it is there, whatever became of the first.
pub const ENROLLED: &str = "tinbox.dev/enrolled";
/// Annotation of a machine that Cluster API Provider Tinkerbell is done with.
pub const PROVISIONED: &str = "v1alpha1.tinkerbell.org/provisioned";
/// Label of a machine that Cluster API Provider Tinkerbell has claimed.
const CLAIMED: &str = "v1alpha1.tinkerbell.org/ownerName";

/// The machines and workflows that are known.
pub trait KnownMachines: Send + Sync + 'static {
    /// The machine that this agent runs on.
    fn by_agent(&self, agent_id: &str) -> Option<Arc<Hardware>>;
    /// Every machine.
    fn all_hardware(&self) -> Vec<Arc<Hardware>>;
    /// True if machines may enroll on some network.
    fn enrolls(&self) -> bool;
    /// True if a Hardware or a Workflow names this agent.
    fn knows_agent(&self, agent_id: &str) -> bool;
    /// True if a Workflow, ended or not, is for this machine.
    fn has_workflow(&self, hardware: &ObjectKey) -> bool;
    /// True if a Workflow with a task for this agent has not ended.
    fn has_open_workflow(&self, agent_id: &str) -> bool;
}

/// Decides if a rule set may make a workflow for a machine: its owner allows it, nobody has
/// claimed it, and nothing was or is to be done to it.
pub fn may_enroll(hardware: &Hardware, has_workflow: bool) -> bool {
    let metadata = &hardware.metadata;
    hardware.spec.auto.enrollment_enabled
        && !metadata.annotations.contains_key(ENROLLED)
        && !metadata.annotations.contains_key(PROVISIONED)
        && !metadata.labels.contains_key(CLAIMED)
        && metadata.deletion_timestamp.is_none()
        && !has_workflow
}
