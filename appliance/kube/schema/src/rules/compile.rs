//! Compiled rules, in a tree parallel to the schema's. Each rule is parsed once.

mod marks;
mod pairs;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr};
use kube_cel::cel::parser::{ParseErrors, Parser};

use crate::field_path;
use crate::node::{Node, Rule};
use marks::marks;

/// Maximum length of a rule, in bytes.
const MAX_RULE_BYTES: usize = 16 * 1024;
/// Maximum number of operators, dots, commas and brackets in a rule; limits its tree's depth.
const MAX_RULE_MARKS: usize = 1_000;
/// Maximum depth of a rule's tree.
const MAX_RULE_DEPTH: usize = 200;

/// Maximum number of syntax errors that are reported for a rule, as in cel-go.
const MAX_TOLD_ERRORS: usize = 100;

/// Parsed expression, or the reason why it is invalid.
pub(super) type Parsed = Result<Arc<IdedExpr>, String>;

/// Rule that is ready for evaluation.
#[derive(Debug, Clone)]
pub(super) struct Compiled {
    pub rule: Rule,
    pub program: Parsed,
    pub message: Option<Arc<IdedExpr>>,
    pub uses_old: bool,
    /// Path that an error reports, relative to the rule's schema; empty for the value itself.
    pub blamed: String,
}

/// Rules of a schema and of every schema below it that has rules.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleTree {
    pub(super) rules: Vec<Compiled>,
    pub(super) properties: BTreeMap<String, RuleTree>,
    pub(super) items: Option<Box<RuleTree>>,
    pub(super) additional: Option<Box<RuleTree>>,
}

impl RuleTree {
    /// Compiles the rules of a schema and of the schemas below it; `None` if there are no rules.
    pub fn of(node: &Node) -> Option<Self> {
        let properties: BTreeMap<_, _> = node
            .properties
            .iter()
            .filter_map(|(name, below)| Some((name.clone(), Self::of(below)?)))
            .collect();
        let tree = Self {
            rules: node.rules.iter().map(|rule| compile(rule, node)).collect(),
            properties,
            items: node.items().and_then(Self::of).map(Box::new),
            additional: node.additional_node().and_then(Self::of).map(Box::new),
        };
        let is_empty = tree.rules.is_empty()
            && tree.properties.is_empty()
            && tree.items.is_none()
            && tree.additional.is_none();
        (!is_empty).then_some(tree)
    }
}

fn compile(rule: &Rule, node: &Node) -> Compiled {
    let program = parse(&rule.rule);
    let message = match rule.message_expression.trim() {
        "" => None,
        expression => parse(expression).ok(),
    };
    let uses_old = program.as_ref().is_ok_and(|program| mentions(program, "oldSelf"));
    let blamed = field_path::resolve(&rule.field_path, node, true);
    Compiled {
        rule: rule.clone(),
        program,
        message,
        uses_old,
        blamed: blamed.map(|resolved| resolved.path).unwrap_or_default(),
    }
}

/// Parses an expression, with limits on its length and depth.
pub(super) fn parse(text: &str) -> Parsed {
    if text.len() > MAX_RULE_BYTES {
        return Err(format!("expression is longer than {MAX_RULE_BYTES} bytes"));
    }
    if marks(text) > MAX_RULE_MARKS {
        return Err(format!("expression has more than {MAX_RULE_MARKS} operators"));
    }
    let parsed = Parser::default().enable_optional_syntax(true).parse(text);
    let expression = parsed.map_err(|errors| syntax_errors(&errors, text))?;
    let too_deep = || format!("expression is nested deeper than {MAX_RULE_DEPTH} levels");
    // Checked before expansion too: expanding a macro needs stack for each level below it.
    if is_deeper(&expression, MAX_RULE_DEPTH) {
        return Err(too_deep());
    }
    let expression = pairs::expand(expression);
    if is_deeper(&expression, MAX_RULE_DEPTH) {
        return Err(too_deep());
    }
    Ok(Arc::new(expression))
}

/// Formats syntax errors as cel-go.
fn syntax_errors(errors: &ParseErrors, text: &str) -> String {
    let each = errors.errors.iter().take(MAX_TOLD_ERRORS).map(|error| {
        let (line, column) = error.pos;
        let at = usize::try_from(line - 1).ok();
        let shown = at.and_then(|at| text.lines().nth(at)).unwrap_or_default();
        let dots = ".".repeat(usize::try_from(column - 1).unwrap_or_default());
        let words = &error.msg;
        format!("ERROR: <input>:{line}:{column}: {words}\n | {shown}\n | {dots}^")
    });
    each.collect::<Vec<_>>().join("\n")
}

/// Returns the direct subexpressions of an expression.
pub(super) fn children(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Comprehension(all) => {
            vec![&all.iter_range, &all.accu_init, &all.loop_cond, &all.loop_step, &all.result]
        }
        Expr::Map(map) => entries(&map.entries),
        Expr::Struct(made) => entries(&made.entries),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn entries<'e>(entries: &'e [IdedEntryExpr]) -> Vec<&'e IdedExpr> {
    let both = |entry: &'e EntryExpr| match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    };
    entries.iter().flat_map(|entry| both(&entry.expr)).collect()
}

fn is_deeper(expression: &IdedExpr, left: usize) -> bool {
    match left.checked_sub(1) {
        None => true,
        Some(left) => children(expression).into_iter().any(|below| is_deeper(below, left)),
    }
}

pub(super) fn mentions(expression: &IdedExpr, variable: &str) -> bool {
    match &expression.expr {
        Expr::Ident(name) => name == variable,
        _ => children(expression).into_iter().any(|below| mentions(below, variable)),
    }
}
