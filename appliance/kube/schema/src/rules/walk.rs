//! Evaluation of every rule of a schema for an object (apiextensions `schema/cel/validation.go`).

use serde_json::Value;

use super::compile::{Compiled, RuleTree};
use super::eval::val::Val;
use super::eval::{Stop, evaluate};
use crate::correlate::{OldItems, is_unchanged, old_field};
use crate::fault::MAX_ERRORS;
use crate::field_error::{FieldError, Findings, NO_PATH};
use crate::node::Node;

/// Cost limit of all rules for one object in cel-go's units: about 1 s in cel-go.
const PER_OBJECT_COST: u64 = 10_000_000;

/// Maximum length of a message that an expression may create, in bytes.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
     validation rules will be run";

/// Evaluates the rules of `tree` for the object `new`; `old` is its old state on an update.
pub(crate) fn check(
    tree: &RuleTree,
    root: &Node,
    new: &Value,
    old: Option<&Value>,
    path: &str,
) -> Findings {
    let mut walk =
        Walk { errors: Vec::new(), warnings: Vec::new(), budget: PER_OBJECT_COST, stopped: false };
    let correlation = Correlation { own: old, parent: None };
    walk.visit(tree, &Spot { node: root, value: new, path, is_root: true }, old, correlation);
    Findings { errors: walk.errors, warnings: walk.warnings }
}

/// Value of the object with its position.
struct Spot<'a> {
    node: &'a Node,
    value: &'a Value,
    path: &'a str,
    /// True for a whole object with type and metadata.
    is_root: bool,
}

/// Old value that belongs to a new value, to detect changes.
#[derive(Clone, Copy)]
struct Correlation<'a> {
    own: Option<&'a Value>,
    /// Nearest value above that can be compared: its schema, new value and old value.
    parent: Option<(&'a Node, &'a Value, &'a Value)>,
}

impl<'a> Correlation<'a> {
    fn is_unchanged(&self, spot: &Spot<'_>) -> bool {
        match (self.own, self.parent) {
            (Some(old), _) => is_unchanged(spot.node, spot.value, old),
            (None, Some((node, new, old))) => is_unchanged(node, new, old),
            (None, None) => false,
        }
    }

    /// Returns the correlation of a value below; `own` is its old value.
    fn below(&self, spot: &Spot<'a>, own: Option<&'a Value>) -> Self {
        match self.own {
            None => *self,
            Some(old) => Self { own, parent: Some((spot.node, spot.value, old)) },
        }
    }
}

struct Walk {
    errors: Vec<FieldError>,
    warnings: Vec<String>,
    budget: u64,
    /// True after the cost limit was exceeded; no further rule runs.
    stopped: bool,
}

impl Walk {
    fn visit<'a>(
        &mut self,
        tree: &RuleTree,
        spot: &Spot<'a>,
        old: Option<&'a Value>,
        correlation: Correlation<'a>,
    ) {
        let reported = self.errors.len() + self.warnings.len();
        if spot.value.is_null() || self.stopped || reported >= MAX_ERRORS {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        for compiled in &tree.rules {
            self.run(compiled, spot, old, correlation);
            if self.stopped {
                return;
            }
        }
        match spot.value {
            Value::Array(items) => self.visit_items(tree, spot, items, old, correlation),
            Value::Object(map) => {
                for (name, value) in map {
                    let old = old.and_then(|old| old.get(name));
                    let own = old_field(spot.node, name, correlation.own);
                    let mut below = correlation.below(spot, own);
                    if correlation.parent.is_none()
                        && matches!(name.as_str(), "apiVersion" | "kind")
                    {
                        below = Correlation { own: None, parent: None };
                    }
                    if let Some((tree, node)) =
                        tree.additional.as_deref().zip(spot.node.additional_node())
                    {
                        let path = format!("{}[{name}]", spot.path);
                        let spot = Spot { node, value, path: &path, is_root: node.embedded };
                        self.visit(tree, &spot, old, below);
                    }
                    if let Some((tree, node)) =
                        tree.properties.get(name).zip(spot.node.properties.get(name))
                    {
                        let path = child(spot.path, name);
                        let spot = Spot { node, value, path: &path, is_root: node.embedded };
                        self.visit(tree, &spot, old, below);
                    }
                }
            }
            _ => {}
        }
    }

    fn visit_items<'a>(
        &mut self,
        tree: &RuleTree,
        spot: &Spot<'a>,
        items: &'a [Value],
        old: Option<&'a Value>,
        correlation: Correlation<'a>,
    ) {
        let Some((tree, node)) = tree.items.as_deref().zip(spot.node.items()) else { return };
        let olds = OldItems::of(spot.node, old);
        let correlated = OldItems::of(spot.node, correlation.own);
        for (index, value) in items.iter().enumerate() {
            let old = olds.as_ref().and_then(|olds| olds.get(value));
            let own = correlated.as_ref().and_then(|olds| olds.get(value));
            let path = format!("{}[{index}]", spot.path);
            let below = correlation.below(spot, own);
            let spot = Spot { node, value, path: &path, is_root: node.embedded };
            self.visit(tree, &spot, old, below);
        }
    }

    fn run(
        &mut self,
        compiled: &Compiled,
        spot: &Spot<'_>,
        old: Option<&Value>,
        correlation: Correlation<'_>,
    ) {
        let place = if spot.path.is_empty() { NO_PATH } else { spot.path };
        let kind = Value::from(spot.node.kind.as_str());
        let program = match &compiled.program {
            _ if compiled.rule.rule.trim().is_empty() => return,
            Ok(program) => program,
            Err(error) => {
                let detail = format!("rule compile error: compilation failed: {error}");
                self.errors.push(FieldError::invalid(place, &kind, detail));
                return;
            }
        };
        let is_optional = compiled.rule.optional_old_self == Some(true);
        if compiled.uses_old && old.is_none() && !is_optional {
            return;
        }
        if self.budget == 0 {
            return self.stop(FieldError::invalid(place, &kind, OUT_OF_BUDGET));
        }
        let value = Val::of(spot.value, spot.node, spot.is_root);
        let old_value = old.map(|old| Val::of(old, spot.node, spot.is_root));
        let old_value = match is_optional {
            true => Some(Val::Optional(old_value.map(std::rc::Rc::new))),
            false => old_value,
        };
        let (result, cost) = evaluate(program, value.clone(), old_value.clone());
        let rule_words = rule_words(compiled);
        let Some(left) = self.budget.checked_sub(cost) else {
            return self.stop(FieldError::invalid(place, &kind, OUT_OF_BUDGET));
        };
        self.budget = left;
        match result {
            Ok(Val::Bool(true)) => {}
            Ok(_) => self.refuse(compiled, spot, value, old_value, correlation),
            Err(Stop::TooDear) => {
                let detail = format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation \
                     rules will be run due to call cost exceeds limit for rule: {rule_words}"
                );
                self.stop(FieldError::invalid(place, &kind, detail));
            }
            Err(Stop::Failed(error)) => {
                let detail = match error.starts_with("no such overload") {
                    true => format!(
                        "'{error}': call arguments did not match a supported operator, function \
                         or macro signature for rule: {rule_words}"
                    ),
                    false => format!("{error} evaluating rule: {rule_words}"),
                };
                self.errors.push(FieldError::invalid(place, &kind, detail));
            }
        }
    }

    fn stop(&mut self, error: FieldError) {
        self.errors.push(error);
        self.stopped = true;
    }

    /// Handles a violated rule: rejects the object, or warns if the value did not change.
    fn refuse<'a>(
        &mut self,
        compiled: &Compiled,
        spot: &Spot<'a>,
        value: Val<'a>,
        old: Option<Val<'a>>,
        correlation: Correlation<'a>,
    ) {
        let place = match (spot.path, compiled.blamed.as_str()) {
            ("", "") => NO_PATH.to_owned(),
            (path, "") => path.to_owned(),
            (path, blamed) => child(path, blamed),
        };
        let rule = &compiled.rule;
        let made = match &compiled.message {
            None => None,
            Some(expression) => {
                let (result, cost) = evaluate(expression, value, old);
                let Some(left) = self.budget.checked_sub(cost) else {
                    let detail = "messageExpression evaluation failed due to running out of cost \
                                  budget, no further validation rules will be run";
                    let kind = Value::from(spot.node.kind.as_str());
                    return self.stop(FieldError::invalid(place, &kind, detail));
                };
                self.budget = left;
                result.ok().and_then(|message| usable(&message))
            }
        };
        let detail = made.unwrap_or_else(|| match rule.message.is_empty() {
            true => format!("failed rule: {}", rule_words(compiled)),
            false => rule.message.trim().to_owned(),
        });
        let mut error = match rule.reason.as_str() {
            "FieldValueForbidden" => FieldError::forbidden(place, detail),
            "FieldValueRequired" => FieldError::required(place, detail),
            "FieldValueDuplicate" => FieldError::duplicate(place, spot.value),
            _ => FieldError::invalid(place, spot.value, detail),
        };
        if matches!(spot.node.kind.as_str(), "object" | "array") {
            error.value = None;
        }
        if !compiled.uses_old && correlation.is_unchanged(spot) {
            self.warnings.push(error.to_string());
        } else {
            self.errors.push(error);
        }
    }
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn rule_words(compiled: &Compiled) -> &str {
    match compiled.rule.message.as_str() {
        "" => compiled.rule.rule.trim(),
        message => message.trim(),
    }
}

/// Returns the text of a message expression's result; `None` if it cannot be used as a message.
fn usable(message: &Val<'_>) -> Option<String> {
    let Val::Text(text) = message else { return None };
    let text = text.trim();
    let fits = !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
    fits.then(|| text.to_owned())
}
