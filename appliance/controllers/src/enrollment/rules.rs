//! Rule sets that choose the Workflow of an agent by the attributes of its machine.
//!
//! The set with the most matching patterns wins, in a tie the first set by namespace and name.
//! Names, label, annotation and owner are those of Tinkerbell.

use api::core::ObjectEvent;
use api::meta::ObjectKey;
use api::tinkerbell::{
    AGENT_ATTRIBUTES, AUTO_ENROLLMENT, Hardware, RULES_MAX, WORKFLOW, WORKFLOW_RULE_SET,
    WorkflowRuleSet,
};
use event_pattern::{Event, Pattern};
use jiff::Timestamp;
use objects::read;
use serde_json::{Value, json};

/// Maximum length of a Workflow name in bytes, as upstream allows.
const NAME_BYTES: usize = 63;

/// Error in a rule set, to report to its owner.
#[derive(Debug, PartialEq, Eq)]
pub struct RuleMistake {
    /// Key of the rule set.
    pub key: ObjectKey,
    /// UID of the rule set.
    pub uid: String,
    /// Resource version of the rule set that contains the error.
    pub version: String,
    /// Description of the error, its position, and the correction.
    pub sentence: String,
}

impl RuleMistake {
    /// Creates the error for a rule set.
    pub fn of(set: &WorkflowRuleSet, sentence: String) -> Self {
        let (uid, version) = (&set.metadata.uid, &set.metadata.resource_version);
        Self { key: set.key(), uid: uid.clone(), version: version.clone(), sentence }
    }

    /// Returns the Event for the owner of the rule set.
    pub fn happening(&self, at: Timestamp) -> ObjectEvent {
        ObjectEvent {
            about: WORKFLOW_RULE_SET,
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            uid: self.uid.clone(),
            reason: "BadRule".to_owned(),
            message: self.sentence.clone(),
            warning: true,
            component: "tinboxd".to_owned(),
            at,
        }
    }
}

/// Returns the rule set that wins for `attributes`, and the errors in rule sets. As in upstream, a
/// set with an invalid pattern is never used.
pub fn choose(sets: Vec<Value>, attributes: &Value) -> (Option<WorkflowRuleSet>, Vec<RuleMistake>) {
    let event = match Event::new(attributes) {
        Ok(event) => event,
        Err(error) => {
            tracing::warn!(%error, "cannot match the facts of an agent");
            return (None, Vec::new());
        }
    };
    let mut sets: Vec<WorkflowRuleSet> = sets
        .into_iter()
        .filter_map(|set| match read(set) {
            Ok(set) => Some(set),
            Err(error) => {
                tracing::warn!(%error, "cannot use a rule set");
                None
            }
        })
        .collect();
    sets.sort_by_key(WorkflowRuleSet::key);
    let (mut best, mut most, mut mistakes) = (None, 0, Vec::new());
    for set in sets {
        match fitting(&set, &event) {
            Ok(count) if count > most => (best, most) = (Some(set), count),
            Ok(_) => {}
            Err(sentence) => mistakes.push(RuleMistake::of(&set, sentence)),
        }
    }
    (best, mistakes)
}

/// Returns the number of patterns of a set that match.
fn fitting(set: &WorkflowRuleSet, event: &Event) -> Result<usize, String> {
    let rules = &set.spec.rules;
    if rules.len() > RULES_MAX {
        return Err(format!(
            "{} rules, the limit of a rule set is {RULES_MAX}: split the rule set",
            rules.len()
        ));
    }
    let mut count = 0;
    for (at, rule) in rules.iter().enumerate() {
        let fits = Pattern::parse(rule).and_then(|pattern| pattern.fits(event));
        let fits = fits.map_err(|why| format!("rule {at} cannot be used: {why}; correct it"))?;
        count += usize::from(fits);
    }
    Ok(count)
}

/// Returns the Workflow that a rule set creates for an agent.
///
/// # Errors
/// The rule set is incomplete or has another namespace than the machine, as a sentence.
pub fn workflow(
    set: &WorkflowRuleSet,
    agent_id: &str,
    hardware: Option<&Hardware>,
    attributes: &str,
) -> Result<Value, String> {
    let wanted = &set.spec.workflow;
    if wanted.template.name.is_empty() {
        return Err("spec.workflow.template.ref is empty: set a Template".to_owned());
    }
    let namespace = match wanted.namespace.as_str() {
        "" => &set.metadata.namespace,
        other => other,
    };
    let mut variables = json!(wanted.template.kvs);
    if !wanted.template.agent_value.is_empty()
        && variables.get(&wanted.template.agent_value).is_none()
    {
        variables[&wanted.template.agent_value] = agent_id.into();
    }
    let mut object = json!({
        "apiVersion": WORKFLOW.api_version(),
        "kind": WORKFLOW.kind,
        "metadata": {
            "name": name(agent_id),
            "namespace": namespace,
            "labels": { AUTO_ENROLLMENT: "true" },
        },
        "spec": { "templateRef": wanted.template.name, "hardwareMap": variables },
    });
    // An owner in another namespace is invalid, and garbage collection would delete the Workflow.
    if *namespace == set.metadata.namespace {
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": WORKFLOW_RULE_SET.api_version(),
            "kind": WORKFLOW_RULE_SET.kind,
            "name": set.metadata.name,
            "uid": set.metadata.uid,
        }]);
    }
    if wanted.add_attributes {
        object["metadata"]["annotations"] = json!({ AGENT_ATTRIBUTES: attributes });
    }
    if let Some(disabled) = wanted.disabled {
        object["spec"]["disabled"] = disabled.into();
    }
    match hardware {
        Some(hardware) if hardware.metadata.namespace == *namespace => {
            object["spec"]["hardwareRef"] = hardware.metadata.name.clone().into();
        }
        Some(hardware) => {
            return Err(format!(
                "the rule set matches {}, but creates workflows in another namespace, \
                 {namespace}: use one namespace for the machine and its workflows",
                hardware.key()
            ));
        }
        None => {}
    }
    Ok(object)
}

/// Returns the Workflow name that upstream uses: `enrollment-52-54-00-77-00-01`.
fn name(agent_id: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = "enrollment-".chars().chain(agent_id.trim().chars().map(allowed)).collect();
    // The name contains only ASCII characters here, so any byte index is valid.
    name[..name.len().min(NAME_BYTES)].trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests;
