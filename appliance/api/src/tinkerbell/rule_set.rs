//! WorkflowRuleSet: which machines get a workflow by themselves, and which one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::Object;

/// Label of a Workflow that was made by a rule set.
pub const AUTO_ENROLLMENT: &str = "tinkerbell.org/auto-enrollment";
/// Annotation with what an agent said of its machine, as JSON.
pub const AGENT_ATTRIBUTES: &str = "tinkerbell.org/agent-attributes";

/// The most rules of one set.
pub const RULES_MAX: usize = 256;

/// Rules by which workflows are made for machines whose agents report.
pub type WorkflowRuleSet = Object<RuleSetSpec, RuleSetStatus>;

/// The rules, and what to make.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleSetSpec {
    /// Patterns of the agent's attributes, in Quamina's language; one that fits is enough.
    pub rules: Vec<String>,
    /// What to make.
    pub workflow: RuleSetWorkflow,
}

/// Status; nothing writes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleSetStatus {}

/// The Workflow that is made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleSetWorkflow {
    /// Makes it disabled.
    pub disabled: Option<bool>,
    /// Its namespace; the rule set's own when empty.
    pub namespace: String,
    /// Whether it carries [`AGENT_ATTRIBUTES`].
    pub add_attributes: bool,
    /// Its template.
    pub template: RuleSetTemplate,
}

/// The template of the Workflow that is made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleSetTemplate {
    /// The template's variable that becomes the agent's id.
    pub agent_value: String,
    /// More variables.
    pub kvs: BTreeMap<String, String>,
    /// Name of the Template.
    #[serde(rename = "ref")]
    pub name: String,
}
