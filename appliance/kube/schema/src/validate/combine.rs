//! Keywords `allOf`, `anyOf`, `oneOf` and `not` (kube-openapi `validate/schema_props.go`).
//!
//! Alternatives are always checked as on create: unchanged invalid values are not accepted in them.

use serde_json::Value;

use super::check as check_value;
use crate::fault::{Fault, Outcome};
use crate::node::Node;

pub(crate) fn check(node: &Node, path: &str, value: &Value) -> Outcome {
    let mut outcome = Outcome::default();
    if !node.any_of.is_empty() {
        any_of(&node.any_of, path, value, &mut outcome);
    }
    if !node.one_of.is_empty() {
        one_of(&node.one_of, path, value, &mut outcome);
    }
    if !node.all_of.is_empty() {
        all_of(&node.all_of, path, value, &mut outcome);
    }
    if let Some(not) = &node.not
        && check_value(not, path, value, None).is_valid()
    {
        outcome.add(broken(path, "must not validate the schema (not)"));
    }
    outcome.held += 1;
    outcome
}

fn broken(path: &str, words: &str) -> Fault {
    Fault::nowhere(format!("{} {words}", go_text::quoted(path)))
}

/// Keeps the failed alternative with the most passed checks, because its message helps most.
fn keep_best(best: &mut Option<Outcome>, failed: Outcome) {
    if best.as_ref().is_none_or(|best| failed.held > best.held) {
        *best = Some(failed);
    }
}

fn any_of(nodes: &[Node], path: &str, value: &Value, outcome: &mut Outcome) {
    let mut best = None;
    for node in nodes {
        let result = check_value(node, path, value, None);
        if result.is_valid() {
            outcome.merge(result);
            return;
        }
        keep_best(&mut best, result);
    }
    outcome.add(broken(path, "must validate at least one schema (anyOf)"));
    if let Some(best) = best {
        outcome.merge(best);
    }
}

fn one_of(nodes: &[Node], path: &str, value: &Value, outcome: &mut Outcome) {
    let mut best = None;
    let mut first_valid = None;
    let mut valid = 0_usize;
    for node in nodes {
        let result = check_value(node, path, value, None);
        if result.is_valid() {
            valid += 1;
            best = None;
            first_valid.get_or_insert(result);
        } else if valid == 0 {
            keep_best(&mut best, result);
        }
    }
    if valid == 1 {
        outcome.merge(first_valid.unwrap_or_default());
        return;
    }
    let found = match valid {
        0 => "Found none valid".to_owned(),
        several => format!("Found {several} valid alternatives"),
    };
    let words = format!("must validate one and only one schema (oneOf). {found}");
    outcome.add(broken(path, &words));
    if let Some(best) = best {
        outcome.merge(best);
    }
}

fn all_of(nodes: &[Node], path: &str, value: &Value, outcome: &mut Outcome) {
    let mut valid = 0_usize;
    for node in nodes {
        let result = check_value(node, path, value, None);
        valid += usize::from(result.is_valid());
        outcome.merge(result);
    }
    if valid != nodes.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        outcome.add(broken(path, &format!("must validate all the schemas (allOf){none}")));
    }
}
