//! Kind WorkflowRuleSet: rules that create a Workflow for a machine automatically.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::Object;

/// Label of a Workflow that a rule set created.
pub const AUTO_ENROLLMENT: &str = "tinkerbell.org/auto-enrollment";
/// Annotation with the machine attributes that the agent reported, as JSON.
pub const AGENT_ATTRIBUTES: &str = "tinkerbell.org/agent-attributes";

/// Maximum number of rules of one rule set.
pub const RULES_MAX: usize = 256;

/// Rules that create a Workflow for a machine when its agent reports.
pub type WorkflowRuleSet = Object<RuleSetSpec, RuleSetStatus>;

/// Rules, and the Workflow that they create.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleSetSpec {
    /// Patterns of the agent's attributes, in Quamina's language. The rule set applies if at least
    /// one pattern matches.
    pub rules: Vec<String>,
    /// Workflow to create for a matching agent.
    pub workflow: RuleSetWorkflow,
}

/// Status of a rule set, always empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleSetStatus {}

/// Workflow that a rule set creates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleSetWorkflow {
    /// True to create the Workflow disabled.
    pub disabled: Option<bool>,
    /// Namespace of the Workflow; empty means the namespace of the rule set.
    pub namespace: String,
    /// True if the Workflow gets the annotation [`AGENT_ATTRIBUTES`].
    pub add_attributes: bool,
    /// Template of the Workflow.
    pub template: RuleSetTemplate,
}

/// Template of the Workflow that a rule set creates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleSetTemplate {
    /// Template variable that receives the agent ID.
    pub agent_value: String,
    /// Further template variables with their values.
    pub kvs: BTreeMap<String, String>,
    /// Name of the Template.
    #[serde(rename = "ref")]
    pub name: String,
}
