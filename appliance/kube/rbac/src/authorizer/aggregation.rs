//! ClusterRoles that aggregate the rules of other ClusterRoles (k8s.io/kubernetes,
//! pkg/controller/clusterroleaggregation).

use std::collections::HashSet;

use serde_json::{Value, json};

use super::rule::PolicyRule;
use serde::Deserialize as _;

/// Returns the rules that `role` gets from the ClusterRoles in `all` by its `aggregationRule`.
/// `None` without an `aggregationRule`, and if its rules are up to date.
pub fn aggregated(role: &Value, all: &[Value]) -> Option<Value> {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array()?;
    let mut chosen = Vec::new();
    // A role that a second selector selects adds no new rules.
    let mut names = HashSet::new();
    for selector in selectors {
        let mut matching: Vec<&Value> = all
            .iter()
            .filter(|other| name(other) != name(role) && !names.contains(name(other)))
            .filter(|other| selects(selector, &other["metadata"]["labels"]))
            .collect();
        matching.sort_by_key(|other| name(other));
        names.extend(matching.iter().map(|other| name(other)));
        chosen.extend(matching);
    }
    let mut seen = HashSet::new();
    let mut rules = Vec::new();
    for rule in chosen.iter().flat_map(|other| other["rules"].as_array()).flatten() {
        // An invalid rule grants nothing.
        let Ok(rule) = PolicyRule::deserialize(rule) else { continue };
        if seen.insert(rule.clone()) {
            rules.push(rule);
        }
    }
    let rules = json!(rules);
    let are = role["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    (rules.as_array().map(Vec::as_slice) != Some(are)).then_some(rules)
}

fn name(role: &Value) -> &str {
    role["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns true if a `LabelSelector` object selects `labels`. An empty selector selects all labels.
fn selects(selector: &Value, labels: &Value) -> bool {
    let pairs = selector["matchLabels"].as_object().into_iter().flatten();
    let equal = pairs.into_iter().all(|(key, value)| labels.get(key) == Some(value));
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    equal
        && expressions.into_iter().all(|expression| {
            let label = expression["key"].as_str().and_then(|key| labels.get(key));
            let values = expression["values"].as_array().map(Vec::as_slice).unwrap_or_default();
            let among = label.is_some_and(|label| values.contains(label));
            match expression["operator"].as_str().unwrap_or_default() {
                "In" => among,
                "NotIn" => !among,
                "Exists" => label.is_some(),
                "DoesNotExist" => label.is_none(),
                _ => false,
            }
        })
}
