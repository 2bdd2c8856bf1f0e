//! Evaluation of a rule. The cost of every step is counted, which limits time and memory (apiserver
//! `pkg/apis/cel/config.go`, cel-go `interpreter/runtimecost.go`).

mod charge;
mod function;
pub(super) mod library;
mod lists;
mod operator;
mod quantity;
mod texts;
pub(super) mod val;
mod weight;

use std::collections::HashMap;
use std::rc::Rc;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue,
    operators,
};

use super::infer::estimate::{LIST_COST, MAP_COST};
use super::infer::kind::is_type_name;
use crate::text::pattern::Pattern;
use library::NO_OVERLOAD;
use operator::Words;
use val::{Entries, Field, Key, Val};
use weight::{lesser_weight, weight};

/// Cost limit of one evaluation of a rule in cel-go's units: about 0.1 s in cel-go.
pub(super) const PER_RULE_COST: u64 = 1_000_000;

/// Number of characters whose reading costs one unit.
pub(super) const CHARACTERS_PER_UNIT: u64 = 10;

/// Reason why an evaluation ended without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// Error with cel-go's message.
    Failed(Words),
    /// The evaluation exceeded its cost limit.
    TooDear,
}

type Evaluated<'a> = Result<Val<'a>, Stop>;

impl From<Words> for Stop {
    fn from(words: Words) -> Self {
        Self::Failed(words)
    }
}

/// Evaluates `rule`; `old` is the variable `oldSelf`. Also returns the cost, even on errors.
pub(super) fn evaluate<'a>(
    rule: &IdedExpr,
    value: Val<'a>,
    old: Option<Val<'a>>,
) -> (Evaluated<'a>, u64) {
    let mut scope = vec![("self", value)];
    scope.extend(old.map(|old| ("oldSelf", old)));
    let mut evaluator = Evaluator { scope, spent: 0, patterns: HashMap::new() };
    let result = evaluator.eval(rule);
    (result, evaluator.spent)
}

struct Evaluator<'r, 'a> {
    scope: Vec<(&'r str, Val<'a>)>,
    spent: u64,
    /// Cache of the regular expressions of this evaluation.
    patterns: HashMap<String, Pattern>,
}

impl<'r, 'a> Evaluator<'r, 'a> {
    fn spend(&mut self, cost: u64) -> Result<(), Stop> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > PER_RULE_COST { Err(Stop::TooDear) } else { Ok(()) }
    }

    /// Adds the cost of reading every character and item of `values`.
    fn traverse(&mut self, values: &[&Val<'a>]) -> Result<(), Stop> {
        let size: u64 = values.iter().map(|value| weight(value)).sum();
        self.spend(1 + size.div_ceil(CHARACTERS_PER_UNIT))
    }

    fn lookup(&self, name: &str) -> Option<&Val<'a>> {
        let mut variables = self.scope.iter().rev();
        variables.find(|(variable, _)| *variable == name).map(|(_, value)| value)
    }

    fn eval(&mut self, expression: &'r IdedExpr) -> Evaluated<'a> {
        match &expression.expr {
            Expr::Literal(literal) => Ok(literal_value(literal)),
            Expr::Ident(name) => {
                self.spend(1)?;
                match self.lookup(name) {
                    Some(Val::Failed(words)) => Err(Stop::Failed(words.to_string())),
                    Some(value) => Ok(value.clone()),
                    None if is_type_name(name) => Ok(Val::Kind(Rc::from(name.as_str()))),
                    None => Err(undeclared(name)),
                }
            }
            Expr::Select(select) => {
                let operand = self.eval(&select.operand)?;
                self.spend(1)?;
                let found = self.select(&operand, &select.field)?;
                match (select.test, found) {
                    (true, found) => Ok(Val::Bool(found.is_some())),
                    (false, Some(value)) => Ok(value),
                    (false, None) => Err(Stop::Failed(format!("no such key: {}", select.field))),
                }
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(list) => self.list(list).map(Val::list),
            Expr::Map(map) => self.map(&map.entries),
            Expr::Struct(_) | Expr::Unspecified => Err(Stop::Failed(NO_OVERLOAD.to_owned())),
        }
    }

    fn list(&mut self, list: &'r ListExpr) -> Result<Vec<Val<'a>>, Stop> {
        self.spend(LIST_COST)?;
        let mut made = Vec::with_capacity(list.elements.len());
        for (index, item) in list.elements.iter().enumerate() {
            let item = self.eval(item)?;
            made.extend(if_any(item, list.optional_indices.contains(&index))?);
        }
        Ok(made)
    }

    fn map(&mut self, entries: &'r [IdedEntryExpr]) -> Evaluated<'a> {
        self.spend(MAP_COST)?;
        let mut made = Entries::new();
        for entry in entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err(Stop::Failed(NO_OVERLOAD.to_owned()));
            };
            let key = self.eval(&entry.key)?;
            let Some(place) = Key::of(&key) else {
                return Err(Stop::Failed(format!("unsupported key type: {}", key.kind_name())));
            };
            let value = self.eval(&entry.value)?;
            if let Some(value) = if_any(value, entry.optional)? {
                made.entry(place).or_insert((key, value));
            }
        }
        Ok(Val::Map(Rc::new(made)))
    }

    /// Selects a field; `None` if it is absent. An operand without fields is an error.
    fn select(&mut self, operand: &Val<'a>, field: &str) -> Result<Option<Val<'a>>, Stop> {
        match operand {
            Val::Object(object) => match object.field(field) {
                Field::Present(value) => Ok(Some(value)),
                Field::Absent | Field::Unknown => Ok(None),
            },
            Val::Keyed(..) | Val::Map(_) => Ok(operator::entry(operand, &Val::text(field))),
            Val::Optional(inner) => match inner.clone() {
                None => Ok(Some(Val::Optional(None))),
                Some(inner) => {
                    let found = self.select(&inner, field)?;
                    Ok(Some(Val::Optional(found.map(Rc::new))))
                }
            },
            _ => Err(Stop::Failed(NO_OVERLOAD.to_owned())),
        }
    }

    fn call(&mut self, call: &'r CallExpr) -> Evaluated<'a> {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::CONDITIONAL, [condition, yes, no]) => match self.eval(condition)? {
                Val::Bool(true) => self.eval(yes),
                Val::Bool(false) => self.eval(no),
                _ => Err(Stop::Failed(NO_OVERLOAD.to_owned())),
            },
            (operators::LOGICAL_AND, [left, right]) => self.logical(left, right, false),
            (operators::LOGICAL_OR, [left, right]) => self.logical(left, right, true),
            (operators::NOT_STRICTLY_FALSE, [value]) => match self.eval(value) {
                Err(Stop::TooDear) => Err(Stop::TooDear),
                Ok(Val::Bool(false)) => Ok(Val::Bool(false)),
                _ => Ok(Val::Bool(true)),
            },
            (name @ (operators::LOGICAL_NOT | operators::NEGATE), [value]) => {
                let value = self.eval(value)?;
                self.spend(1)?;
                Ok(operator::unary(name, &value)?)
            }
            (operators::OPT_SELECT, [operand, field]) => {
                let operand = self.eval(operand)?;
                let Val::Text(field) = self.eval(field)? else {
                    return Err(Stop::Failed(NO_OVERLOAD.to_owned()));
                };
                self.spend(1)?;
                match self.select(&operand, &field)? {
                    Some(found @ Val::Optional(_)) if matches!(operand, Val::Optional(_)) => {
                        Ok(found)
                    }
                    found => Ok(Val::Optional(found.map(Rc::new))),
                }
            }
            (operators::OPT_INDEX, [operand, index]) => {
                let operand = self.eval(operand)?;
                let index = self.eval(index)?;
                self.spend(1)?;
                Ok(operator::optional_index(&operand, &index)?)
            }
            (operators::ADD, [left, right]) => self.add(left, right),
            (name, [left, right]) if is_operator(name) => {
                let left = self.eval(left)?;
                let right = self.eval(right)?;
                self.operate(name, left, right)
            }
            _ => self.function(call),
        }
    }

    fn operate(&mut self, name: &str, left: Val<'a>, right: Val<'a>) -> Evaluated<'a> {
        match name {
            // Lists of different lengths are unequal without a comparison of items.
            operators::EQUALS | operators::NOT_EQUALS
                if left.is_list() && right.is_list() && left.size() != right.size() =>
            {
                self.spend(1)?;
            }
            operators::EQUALS | operators::NOT_EQUALS => {
                let least = lesser_weight(&left, &right);
                self.spend(1 + least.div_ceil(CHARACTERS_PER_UNIT))?;
            }
            // The operator may compare each item.
            operators::IN if right.is_list() => self.spend(1 + weight(&right))?,
            // Each item is copied to the new list.
            operators::ADD if left.is_list() && right.is_list() => {
                let items = [&left, &right].into_iter().filter_map(Val::size).sum::<usize>();
                self.spend(items as u64)?;
                self.traverse(&[&left, &right])?;
            }
            operators::INDEX | operators::IN => self.spend(1)?,
            _ => self.traverse(&[&left, &right])?,
        }
        Ok(operator::binary(name, left, right)?)
    }

    /// Evaluates `+`. A growing list of a macro such as `map` is extended in place, not copied.
    fn add(&mut self, left: &'r IdedExpr, right: &'r IdedExpr) -> Evaluated<'a> {
        let (name, added) = match (&left.expr, &right.expr) {
            (Expr::Ident(name), Expr::List(added)) if name.starts_with('@') => (name, added),
            _ => {
                let left = self.eval(left)?;
                let right = self.eval(right)?;
                return self.operate(operators::ADD, left, right);
            }
        };
        self.spend(1)?;
        let items = self.list(added)?;
        // Only the step of a comprehension uses its accumulator; the result replaces it.
        let mut variables = self.scope.iter_mut().rev();
        let slot = variables.find(|(variable, _)| *variable == name.as_str());
        let (_, slot) = slot.ok_or_else(|| undeclared(name))?;
        let list = std::mem::replace(slot, Val::Null);
        if let Val::Failed(words) = list {
            return Err(Stop::Failed(words.to_string()));
        }
        Ok(operator::append(list, items)?)
    }

    /// Evaluates `&&` (`decisive` is false) or `||` (true). The decisive value overrides errors.
    fn logical(
        &mut self,
        left: &'r IdedExpr,
        right: &'r IdedExpr,
        decisive: bool,
    ) -> Evaluated<'a> {
        let left = self.eval(left);
        match left {
            Err(Stop::TooDear) => return Err(Stop::TooDear),
            Ok(Val::Bool(flag)) if flag == decisive => return Ok(Val::Bool(decisive)),
            _ => {}
        }
        let right = self.eval(right);
        match (left, right) {
            (_, Err(Stop::TooDear)) => Err(Stop::TooDear),
            (_, Ok(Val::Bool(flag))) if flag == decisive => Ok(Val::Bool(decisive)),
            (Ok(Val::Bool(_)), Ok(Val::Bool(_))) => Ok(Val::Bool(!decisive)),
            (Err(stop), _) | (_, Err(stop)) => Err(stop),
            _ => Err(Stop::Failed(NO_OVERLOAD.to_owned())),
        }
    }

    fn comprehension(&mut self, comprehension: &'r ComprehensionExpr) -> Evaluated<'a> {
        let range = self.eval(&comprehension.iter_range)?;
        self.spend(1)?;
        let start = self.scope.len();
        let accumulator = self.eval(&comprehension.accu_init)?;
        self.scope.push((&comprehension.accu_var, accumulator));
        self.scope.push((&comprehension.iter_var, Val::Null));
        self.scope
            .extend(comprehension.iter_var2.iter().map(|second| (second.as_str(), Val::Null)));
        let result = self.iterate(comprehension, &range, start);
        self.scope.truncate(start + 1);
        let result = result.and_then(|()| self.eval(&comprehension.result));
        self.scope.truncate(start);
        result
    }

    fn iterate(
        &mut self,
        comprehension: &'r ComprehensionExpr,
        range: &Val<'a>,
        start: usize,
    ) -> Result<(), Stop> {
        let Some(items) = range.elements() else {
            return Err(Stop::Failed(NO_OVERLOAD.to_owned()));
        };
        for (index, item) in items.enumerate() {
            self.spend(1)?;
            if comprehension.iter_var2.is_none() {
                self.scope[start + 1].1 = item;
            } else {
                // A map yields keys and values, a list indices and items.
                let value = operator::entry(range, &item);
                let index = i64::try_from(index).unwrap_or(i64::MAX);
                let (first, second) = match value {
                    Some(value) => (item, value),
                    None => (Val::Int(index), item),
                };
                self.scope[start + 1].1 = first;
                self.scope[start + 2].1 = second;
            }
            if let Val::Bool(false) = self.eval(&comprehension.loop_cond)? {
                break;
            }
            // A later item may decide `all` and `exists` in spite of an error for this item.
            self.scope[start].1 = match self.eval(&comprehension.loop_step) {
                Ok(stepped) => stepped,
                Err(Stop::Failed(words)) => Val::Failed(Rc::from(words)),
                Err(Stop::TooDear) => return Err(Stop::TooDear),
            };
        }
        Ok(())
    }
}

/// Returns the value of an element; for an element marked with `?`, the optional's value, if any.
fn if_any(value: Val<'_>, is_optional: bool) -> Result<Option<Val<'_>>, Stop> {
    match value {
        value if !is_optional => Ok(Some(value)),
        Val::Optional(inner) => Ok(inner.map(Rc::unwrap_or_clone)),
        _ => Err(Stop::Failed(NO_OVERLOAD.to_owned())),
    }
}

fn is_operator(name: &str) -> bool {
    name.starts_with('_') || name == operators::IN
}

fn undeclared(name: &str) -> Stop {
    Stop::Failed(format!("undeclared reference to '{name}'"))
}

fn literal_value<'a>(literal: &LiteralValue) -> Val<'a> {
    match literal {
        LiteralValue::Boolean(flag) => Val::Bool(*flag.inner()),
        LiteralValue::Bytes(bytes) => Val::Foreign(bytes.inner().to_vec().into()),
        LiteralValue::Double(number) => Val::Double(*number.inner()),
        LiteralValue::Int(number) => Val::Int(*number.inner()),
        LiteralValue::Null => Val::Null,
        LiteralValue::String(text) => Val::text(text.inner()),
        LiteralValue::UInt(number) => Val::Uint(*number.inner()),
    }
}
