//! Group `tinkerbell.org/v1alpha1`: Hardware, Template, Workflow, WorkflowRuleSet
//! (upstream tinkerbell/tinkerbell `api/v1alpha1`).

mod chosen_disk;
mod hardware;
mod reference;
mod retry;
mod rule_set;
mod workflow;

pub use chosen_disk::ChosenDisk;
pub use hardware::{
    Auto, Dhcp, Disk, Hardware, HardwareMetadata, HardwareSpec, HardwareStatus, Instance,
    InstanceIp, Interface, Ip, Ipxe, Netboot, ObjectRef, OperatingSystem, Osie, StaticRoute,
};
pub use reference::{REFERENCES_MAX, Reference};
pub use retry::{
    ActionAttempt, Attempt, CANCEL_REQUEST, RETRY_FROM, RETRY_REQUEST, Requests, Retry, RetryFrom,
    WorkflowEnd,
};
pub use rule_set::{
    AGENT_ATTRIBUTES, AUTO_ENROLLMENT, RULES_MAX, RuleSetSpec, RuleSetStatus, RuleSetTemplate,
    RuleSetWorkflow, WorkflowRuleSet,
};
pub use workflow::{
    ActionState, ActionStatus, BootMode, BootOptions, BootOptionsStatus, Condition, CurrentState,
    Custom, JobStatus, Namespaces, NetbootToggle, State, TaskStatus, Template, TemplateSpec,
    TemplateStatus, WAITING, Workflow, WorkflowSpec, WorkflowStatus,
};

use crate::meta::Resource;

/// Label of a Hardware that the box created when the machine enrolled.
pub const AUTO_DISCOVERED: &str = "tinkerbell.org/auto-discovered";
/// Annotation of a Hardware with the disks that no action may write: selectors as in actions
/// (`/dev/sdb`, `serialNumber=S4EV,model=Samsung`), separated by `;` or line feeds.
pub const PRESERVE_DISKS: &str = "tinbox.dev/preserve-disks";

/// Resource of the kind Hardware.
pub const HARDWARE: Resource =
    Resource { group: "tinkerbell.org", version: "v1alpha1", kind: "Hardware", plural: "hardware" };
/// Resource of the kind Template.
pub const TEMPLATE: Resource = Resource {
    group: "tinkerbell.org",
    version: "v1alpha1",
    kind: "Template",
    plural: "templates",
};
/// Resource of the kind Workflow.
pub const WORKFLOW: Resource = Resource {
    group: "tinkerbell.org",
    version: "v1alpha1",
    kind: "Workflow",
    plural: "workflows",
};
/// Resource of the kind WorkflowRuleSet.
pub const WORKFLOW_RULE_SET: Resource = Resource {
    group: "tinkerbell.org",
    version: "v1alpha1",
    kind: "WorkflowRuleSet",
    plural: "workflowrulesets",
};
