//! Admission of a schema's rules: they must compile, and their estimated cost is limited
//! (apiextensions `apis/apiextensions/validation/{validation,cel_validation}.go`).

use serde_json::Value;

use super::compile::{mentions, parse};
use super::infer::declared::Declared;
use super::infer::infer;
use super::infer::kind::Kind;
use crate::field_error::FieldError;
use crate::node::{Additional, Node, Rule};

/// Limit of the estimated cost of one rule, summed over all values that it applies to.
const RULE_COST_LIMIT: u64 = 10_000_000;

/// Limit of the estimated cost of all rules of a schema.
const SCHEMA_COST_LIMIT: u64 = 100_000_000;

/// Number of the most expensive rules that an error message names.
const NAMED_RULES: usize = 4;

/// Checks the CEL rules of the structural schema at `path`.
pub(crate) fn check(root: &Node, path: &str) -> Vec<FieldError> {
    let mut admission = Admission { errors: Vec::new(), total: 0, dearest: Vec::new() };
    let scope = Scope { cardinality: Some(1), uncorrelated: None, is_root: true };
    admission.visit(root, path, scope);
    if admission.total > SCHEMA_COST_LIMIT {
        for (_, place) in &admission.dearest {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire \
                          OpenAPIv3 schema";
            admission.errors.push(FieldError::forbidden(place, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = too_dear(what, admission.total, SCHEMA_COST_LIMIT);
        admission.errors.push(FieldError::forbidden(path, detail));
    }
    admission.errors
}

#[derive(Clone, Copy)]
struct Scope<'s> {
    /// Maximum number of occurrences of the value in an object; `None` without a limit.
    cardinality: Option<u64>,
    /// Nearest schema above without correlation of old and new values, such as an atomic list.
    uncorrelated: Option<&'s str>,
    is_root: bool,
}

struct Admission {
    errors: Vec<FieldError>,
    total: u64,
    dearest: Vec<(u64, String)>,
}

impl Admission {
    fn visit(&mut self, node: &Node, path: &str, scope: Scope<'_>) {
        let elements = match (node.kind(), &node.additional) {
            ("object", Some(_)) => limit(node.limits.max_properties),
            ("array", _) => limit(node.limits.max_items),
            _ => Some(1),
        };
        let below = Scope {
            cardinality: scope.cardinality.zip(elements).map(|(one, all)| one.saturating_mul(all)),
            is_root: false,
            ..scope
        };
        if let Some(Additional::Of(values)) = &node.additional {
            self.visit(values, &format!("{path}.additionalProperties"), below);
        }
        for (name, property) in &node.properties {
            self.visit(property, &format!("{path}.properties[{name}]"), below);
        }
        if let Some(items) = node.items() {
            let correlated = node.list_type.as_deref() == Some("map");
            let uncorrelated = scope.uncorrelated.or((!correlated).then_some(path));
            self.visit(items, &format!("{path}.items"), Scope { uncorrelated, ..below });
        }
        for (index, rule) in node.rules.iter().enumerate() {
            if !rule.rule.trim().is_empty() {
                let place = format!("{path}.x-kubernetes-validations[{index}]");
                self.check_rule(node, rule, &place, scope);
            }
        }
    }

    fn check_rule(&mut self, node: &Node, rule: &Rule, path: &str, scope: Scope<'_>) {
        let declared = Declared::Of(node, scope.is_root || node.embedded);
        let is_optional = rule.optional_old_self == Some(true);
        let place = format!("{path}.rule");
        let program = match parse(&rule.rule) {
            Ok(program) => program,
            Err(error) => {
                self.observe(0, declared, scope, &place, "estimated rule cost");
                self.errors.push(refused(rule, place, &format!("compilation failed: {error}")));
                return;
            }
        };
        let inferred = infer(&program, &rule.rule, declared, is_optional);
        if !inferred.errors.is_empty() {
            let detail = format!("compilation failed: {}", inferred.errors.join("\n"));
            self.errors.push(refused(rule, place, &detail));
            return;
        }
        if !matches!(inferred.kind, Kind::Bool) {
            let detail = "cel expression must evaluate to a bool";
            self.errors.push(refused(rule, place, detail));
            return;
        }
        self.observe(inferred.cost, declared, scope, &place, "estimated rule cost");
        self.check_message(rule, path, declared, is_optional);
        let uses_old = mentions(&program, "oldSelf");
        if let Some(uncorrelated) = scope.uncorrelated.filter(|_| uses_old) {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within \
                 {uncorrelated}"
            );
            self.errors.push(FieldError::invalid(place, &rule.rule.as_str().into(), detail));
        }
        if let Some(set) = rule.optional_old_self.filter(|_| !uses_old) {
            let detail = "may not be set if oldSelf is not used in rule";
            let place = format!("{path}.optionalOldSelf");
            self.errors.push(FieldError::invalid(place, &Value::from(set), detail));
        }
    }

    fn check_message(
        &mut self,
        rule: &Rule,
        path: &str,
        declared: Declared<'_>,
        is_optional: bool,
    ) {
        let expression = rule.message_expression.as_str();
        if expression.trim().is_empty() {
            return;
        }
        let place = format!("{path}.messageExpression");
        let failed = "messageExpression compilation failed: ";
        let program = match parse(expression) {
            Ok(program) => program,
            Err(error) => {
                self.errors.push(refused(rule, place, &format!("{failed}{error}")));
                return;
            }
        };
        let inferred = infer(&program, expression, declared, is_optional);
        if !inferred.errors.is_empty() {
            let detail = format!("{failed}{}", inferred.errors.join("\n"));
            self.errors.push(refused(rule, place, &detail));
        } else if inferred.kind != Kind::Text {
            let detail = "messageExpression must evaluate to a string";
            self.errors.push(refused(rule, place, detail));
        } else {
            self.note(inferred.cost, &place, "estimated messageExpression cost");
        }
    }

    /// Adds the cost of an expression, multiplied by the number of occurrences of its value.
    fn observe(
        &mut self,
        cost: u64,
        declared: Declared<'_>,
        scope: Scope<'_>,
        place: &str,
        what: &str,
    ) {
        let times = scope.cardinality.unwrap_or_else(|| declared.max_cardinality());
        self.note(cost.saturating_mul(times), place, what);
    }

    fn note(&mut self, cost: u64, place: &str, what: &str) {
        if cost > RULE_COST_LIMIT {
            let detail = too_dear(what, cost, RULE_COST_LIMIT);
            self.errors.push(FieldError::forbidden(place, detail));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_COST_LIMIT / 100 {
            self.dearest.push((cost, place.to_owned()));
            self.dearest.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.dearest.truncate(NAMED_RULES);
        }
    }
}

fn limit(limit: Option<i64>) -> Option<u64> {
    limit.map(|limit| u64::try_from(limit).unwrap_or_default())
}

fn too_dear(what: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "the factor is told with few digits")]
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// Returns an error that shows the whole rule in upstream's internal form.
fn refused(rule: &Rule, place: String, detail: &str) -> FieldError {
    let text = |text: &str| go_text::json(&Value::from(text));
    let reason = match rule.reason.as_str() {
        "" => "null".to_owned(),
        reason => text(reason),
    };
    let old_self = rule.optional_old_self.map_or("null".to_owned(), |set| set.to_string());
    let shown = format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{reason},\
         \"FieldPath\":{},\"OptionalOldSelf\":{old_self}}}",
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        text(&rule.field_path),
    );
    FieldError::invalid_shown(place, &shown, detail)
}
