//! Inputs of the enrollment decision: the known machines, and the conditions for a rule set.

use std::sync::Arc;

use api::meta::ObjectKey;
use api::tinkerbell::Hardware;

/// Annotation with the workflow that a rule set created for a machine. While the annotation exists,
/// no second workflow is created, even if the first one was deleted.
pub const ENROLLED: &str = "tinbox.dev/enrolled";
/// Annotation of a machine that Cluster API Provider Tinkerbell has provisioned.
pub const PROVISIONED: &str = "v1alpha1.tinkerbell.org/provisioned";
/// Label of a machine that Cluster API Provider Tinkerbell has claimed.
const CLAIMED: &str = "v1alpha1.tinkerbell.org/ownerName";

/// Index of known machines and workflows.
pub trait KnownMachines: Send + Sync + 'static {
    /// Returns the machine on which this agent runs.
    fn by_agent(&self, agent_id: &str) -> Option<Arc<Hardware>>;
    /// Returns every known machine, in any order.
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

/// True if a rule set may create a workflow for a machine. The owner must allow it, no user may
/// have claimed the machine, and no workflow may exist for it or have enrolled it before.
pub fn may_enroll(hardware: &Hardware, has_workflow: bool) -> bool {
    let metadata = &hardware.metadata;
    hardware.spec.auto.enrollment_enabled
        && !metadata.annotations.contains_key(ENROLLED)
        && !metadata.annotations.contains_key(PROVISIONED)
        && !metadata.labels.contains_key(CLAIMED)
        && metadata.deletion_timestamp.is_none()
        && !has_workflow
}
