//! Type check and maximum cost of a rule, computed before it runs (cel-go
//! `checker/{checker,cost}.go`, apiserver `pkg/cel/library/cost.go`).

pub(super) mod declared;
pub(super) mod estimate;
pub(super) mod kind;
mod literal;
mod place;
mod signature;

use std::collections::HashMap;
use std::rc::Rc;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators,
};

use declared::Declared;
use estimate::Estimate;
use kind::{Bindings, Kind, is_type_name};
use place::{Mark, Position, place_of};
use signature::overloads;

/// Result of the type check of a rule.
pub(super) struct Inferred<'a> {
    pub kind: Kind<'a>,
    pub cost: u64,
    /// Type errors with cel-go's messages, in the order of their positions in the text.
    pub errors: Vec<String>,
}

/// Infers type and cost of `expression`. `declared` is the declaration of `self`.
pub(super) fn infer<'a>(
    expression: &IdedExpr,
    source: &str,
    declared: Declared<'a>,
    old_is_optional: bool,
) -> Inferred<'a> {
    let own = declared.kind().unwrap_or(Kind::Dyn);
    let own = Estimate::declared(own, declared);
    let mut old = own.clone();
    if old_is_optional {
        old.kind = Kind::Optional(Rc::new(old.kind));
    }
    let scope = vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)];
    let mut inference = Inference { source, scope, errors: Vec::new(), seen: HashMap::new() };
    let known = inference.known(expression);
    inference.errors.sort();
    let errors = inference.errors.into_iter().map(|(_, text)| text).collect();
    Inferred { kind: known.kind, cost: known.cost, errors }
}

struct Inference<'s, 'a> {
    source: &'s str,
    scope: Vec<(String, Estimate<'a>)>,
    errors: Vec<(Position, String)>,
    /// Number of occurrences of each token so far, to find the position of the next one.
    seen: HashMap<Mark, usize>,
}

impl<'a> Inference<'_, 'a> {
    /// Returns the position of the next occurrence of `mark` in the text.
    fn next_place(&mut self, mark: Mark) -> Position {
        let times = self.seen.entry(mark.clone()).or_default();
        *times += 1;
        place_of(self.source, &mark, *times - 1)
    }

    fn refuse(&mut self, place: Position, words: &str) {
        let Position { line, column } = place;
        let text = self.source.lines().nth(line - 1).unwrap_or_default();
        let dots = ".".repeat(column - 1);
        let error = format!("ERROR: <input>:{line}:{column}: {words}\n | {text}\n | {dots}^");
        self.errors.push((place, error));
    }

    fn known(&mut self, expression: &IdedExpr) -> Estimate<'a> {
        match &expression.expr {
            Expr::Literal(literal) => {
                let place = self.next_place(Mark::Literal(literal::text(literal)));
                Estimate { place, ..literal::known(literal) }
            }
            Expr::Ident(name) => self.ident(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(list) => {
                let place = self.next_place(Mark::Operator("["));
                let items = list.elements.iter().enumerate().map(|(index, item)| {
                    let item = self.known(item);
                    self.unwrapped(item, list.optional_indices.contains(&index))
                });
                let items: Vec<_> = items.collect();
                let kind = self.joined(&items);
                Estimate { place, ..estimate::list(Kind::List(Rc::new(kind)), &items) }
            }
            Expr::Map(map) => {
                let mut keys = Vec::new();
                let mut values = Vec::new();
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        keys.push(self.known(&entry.key));
                        let value = self.known(&entry.value);
                        values.push(self.unwrapped(value, entry.optional));
                    }
                }
                let key = self.joined(&keys);
                // A lookup with a composite key never succeeds, and its type could double per map.
                let key = if key.has_parts() { Kind::Dyn } else { key };
                let value = self.joined(&values);
                estimate::map(Kind::Map(Rc::new(key), Rc::new(value)), &keys, &values)
            }
            Expr::Struct(made) => {
                let place = self.next_place(Mark::Operator("{"));
                let words = format!("undeclared reference to '{}'", made.type_name);
                self.refuse(place, &format!("{words} (in container '')"));
                Estimate::of(Kind::Dyn, 0)
            }
            Expr::Unspecified => Estimate::of(Kind::Dyn, 0),
        }
    }

    /// Returns the estimate of an element of a literal; with `?`, of the value in the optional.
    fn unwrapped(&mut self, item: Estimate<'a>, is_optional: bool) -> Estimate<'a> {
        let kind = match &item.kind {
            Kind::Optional(inner) if is_optional => inner.as_ref().clone(),
            Kind::Dyn => Kind::Dyn,
            kind if is_optional => {
                self.expect(&Kind::Optional(Rc::new(kind.clone())), &item);
                kind.clone()
            }
            kind => kind.clone(),
        };
        Estimate { kind, ..item }
    }

    /// Returns the common type of a literal's elements; `Dyn` if the types differ.
    fn joined(&mut self, items: &[Estimate<'a>]) -> Kind<'a> {
        let Some(first) = items.first() else { return Kind::Dyn };
        for item in items {
            if !first.kind.accepts(&item.kind, &mut Bindings::new()) {
                self.expect(&first.kind, item);
                return Kind::Dyn;
            }
        }
        first.kind.clone()
    }

    /// Reports an error if the type of a value is not `wanted`.
    fn expect(&mut self, wanted: &Kind<'a>, found: &Estimate<'a>) {
        if !wanted.accepts(&found.kind, &mut Bindings::new()) {
            let words = format!("expected type '{wanted}' but found '{}'", found.kind);
            self.refuse(found.place, &words);
        }
    }

    fn ident(&mut self, name: &str) -> Estimate<'a> {
        let place = match name.starts_with('@') {
            true => Position::START,
            false => self.next_place(Mark::Name(name.to_owned())),
        };
        if let Some((_, known)) = self.scope.iter().rev().find(|(variable, _)| variable == name) {
            return Estimate { cost: 1, place, ..known.clone() };
        }
        if !is_type_name(name) {
            let words = format!("undeclared reference to '{name}' (in container '')");
            self.refuse(place, &words);
        }
        let kind = if is_type_name(name) { Kind::Type } else { Kind::Dyn };
        // Upstream assumes the size of `self` for a name without a known size.
        let declared = self.scope.first().and_then(|(_, own)| own.declared);
        Estimate { declared, place, ..Estimate::of(kind, 1) }
    }

    fn select(&mut self, select: &SelectExpr) -> Estimate<'a> {
        let operand = self.known(&select.operand);
        let place = match select.test {
            true => self.next_place(Mark::Call("has".to_owned())),
            false => self.next_place(Mark::Field(select.field.clone())),
        };
        let (found, inner) = self.field(&operand, &operand.kind, &select.field, place);
        if select.test {
            return Estimate { place, ..Estimate::of(Kind::Bool, operand.cost) };
        }
        let charged = matches!(operand.kind, Kind::Map(..) | Kind::Object(_));
        let mut known = Estimate { place, ..found };
        if inner {
            known.kind = Kind::Optional(Rc::new(known.kind));
        }
        known.cost = operand.cost.saturating_add(u64::from(charged));
        known
    }

    /// Returns the estimate of a field, and true if its operand, and so the field, is optional.
    fn field(
        &mut self,
        operand: &Estimate<'a>,
        kind: &Kind<'a>,
        name: &str,
        place: Position,
    ) -> (Estimate<'a>, bool) {
        match kind {
            Kind::Optional(inner) => {
                let inner = inner.as_ref().clone();
                (self.field(operand, &inner, name, place).0, true)
            }
            Kind::Object(declared) => match declared.field(name) {
                Some(below) => {
                    (Estimate::declared(below.kind().unwrap_or(Kind::Dyn), below), false)
                }
                None => {
                    self.refuse(place, &format!("undefined field '{name}'"));
                    (Estimate::of(Kind::Dyn, 0), false)
                }
            },
            Kind::Map(_, value) => {
                let below = operand.declared.and_then(Declared::values);
                let known = match below {
                    Some(below) => Estimate::declared(value.as_ref().clone(), below),
                    None => Estimate::of(value.as_ref().clone(), 0),
                };
                (known, false)
            }
            Kind::Dyn => (Estimate::of(Kind::Dyn, 0), false),
            other => {
                let words = format!("type '{other}' does not support field selection");
                self.refuse(place, &words);
                (Estimate::of(Kind::Dyn, 0), false)
            }
        }
    }

    fn call(&mut self, call: &CallExpr) -> Estimate<'a> {
        let name = call.func_name.as_str();
        if let (operators::OPT_SELECT, [operand, field]) = (name, call.args.as_slice()) {
            return self.optional_select(operand, field);
        }
        let (name, target) = match &call.target {
            None => (name.to_owned(), None),
            Some(target) => match self.qualified(target, name) {
                Some(qualified) => (qualified, None),
                None => (name.to_owned(), Some(self.known(target))),
            },
        };
        let place = self.call_place(call, &name);
        if let (Some(target), "optMap" | "optFlatMap", [variable, body]) =
            (&target, name.as_str(), call.args.as_slice())
        {
            return self.optional_map(&name, target, variable, body);
        }
        let args: Vec<Estimate<'a>> = call.args.iter().map(|arg| self.known(arg)).collect();
        self.check_literal(&name, &args, call);
        if matches!(name.as_str(), operators::LOGICAL_AND | operators::LOGICAL_OR) {
            for condition in &args {
                self.expect(&Kind::Bool, condition);
            }
            return Estimate { place, ..estimate::call(&name, Kind::Bool, None, &args) };
        }
        let Some(overloads) = overloads(&name) else {
            let words = format!("undeclared reference to '{name}' (in container '')");
            self.refuse(place, &words);
            return Estimate::of(Kind::Dyn, 0);
        };
        let kinds: Vec<&Kind<'a>> = args.iter().map(|arg| &arg.kind).collect();
        let receiver = target.as_ref().map(|target| &target.kind);
        let found: Vec<Kind<'a>> =
            overloads.iter().filter_map(|overload| overload.call(receiver, &kinds)).collect();
        let Some(first) = found.first() else {
            let given: Vec<String> = kinds.iter().map(ToString::to_string).collect();
            let given = given.join(", ");
            let applied = match receiver {
                Some(receiver) => format!("{receiver}.({given})"),
                None => format!("({given})"),
            };
            let words = format!("found no matching overload for '{name}' applied to '{applied}'");
            self.refuse(place, &words);
            return Estimate::of(Kind::Dyn, 0);
        };
        let same = found.iter().all(|kind| kind == first);
        let kind = if same { first.clone() } else { Kind::Dyn };
        Estimate { place, ..estimate::call(&name, kind, target.as_ref(), &args) }
    }

    /// Reports an error for a string literal that the function cannot parse.
    fn check_literal(&mut self, name: &str, args: &[Estimate<'a>], call: &CallExpr) {
        if let Some(Expr::Literal(LiteralValue::String(text))) =
            call.args.last().map(|arg| &arg.expr)
            && !literal::reads(name, text.inner())
        {
            let place = args.last().map_or(Position::START, |arg| arg.place);
            self.refuse(place, &format!("invalid {name} argument"));
        }
    }

    /// Returns a dotted function name such as `lists.range`; `None` if a variable comes first.
    fn qualified(&self, target: &IdedExpr, name: &str) -> Option<String> {
        let Expr::Ident(namespace) = &target.expr else { return None };
        let is_variable = self.scope.iter().any(|(variable, _)| variable == namespace);
        let qualified = format!("{namespace}.{name}");
        (!is_variable && overloads(&qualified).is_some()).then_some(qualified)
    }

    fn call_place(&mut self, call: &CallExpr, name: &str) -> Position {
        let made_by_macro = matches!(
            call.args.first().map(|arg| &arg.expr),
            Some(Expr::Ident(variable)) if variable.starts_with('@')
        );
        match (made_by_macro, Mark::operator(name)) {
            (true, _) => Position::START,
            (false, Some(mark)) => self.next_place(mark),
            (false, None) => self.next_place(Mark::Call(call.func_name.clone())),
        }
    }

    fn optional_select(&mut self, operand: &IdedExpr, field: &IdedExpr) -> Estimate<'a> {
        let operand = self.known(operand);
        let Expr::Literal(LiteralValue::String(name)) = &field.expr else {
            return Estimate::of(Kind::Dyn, 0);
        };
        let (mut found, _) = self.field(&operand, &operand.kind, name.inner(), Position::START);
        found.kind = Kind::Optional(Rc::new(found.kind));
        found.cost = operand.cost.saturating_add(1);
        found
    }

    fn optional_map(
        &mut self,
        name: &str,
        target: &Estimate<'a>,
        variable: &IdedExpr,
        body: &IdedExpr,
    ) -> Estimate<'a> {
        let (Kind::Optional(inner), Expr::Ident(variable)) = (&target.kind, &variable.expr) else {
            return Estimate::of(Kind::Dyn, target.cost);
        };
        let bound = Estimate { kind: inner.as_ref().clone(), ..target.clone() };
        self.scope.push((variable.clone(), bound));
        let mut mapped = self.known(body);
        self.scope.pop();
        if name == "optMap" {
            mapped.kind = Kind::Optional(Rc::new(mapped.kind));
        }
        mapped.cost = mapped.cost.saturating_add(target.cost).saturating_add(3);
        mapped
    }

    fn comprehension(&mut self, all: &ComprehensionExpr) -> Estimate<'a> {
        let range = self.known(&all.iter_range);
        let start = self.known(&all.accu_init);
        let item = match &range.kind {
            Kind::List(item) => range.entry(item.as_ref().clone(), Declared::items, false),
            Kind::Map(key, _) => range.entry(key.as_ref().clone(), |_| Some(Declared::Key), true),
            // Upstream determines the type of these items too late to use it.
            Kind::Dyn => Estimate::of(Kind::Dyn, 0),
            other => {
                let words = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.refuse(range.place, &words);
                Estimate::of(Kind::Dyn, 0)
            }
        };
        let depth = self.scope.len();
        self.scope.push((all.accu_var.clone(), Estimate { declared: None, ..start.clone() }));
        // The names of the variables occur once in the text, before the body.
        let _ = self.next_place(Mark::Name(all.iter_var.clone()));
        match &all.iter_var2 {
            None => self.scope.push((all.iter_var.clone(), item)),
            Some(second) => {
                let _ = self.next_place(Mark::Name(second.clone()));
                let (key, value) = match &range.kind {
                    Kind::Map(_, value) => {
                        (item, range.entry(value.as_ref().clone(), Declared::values, false))
                    }
                    Kind::List(_) => (Estimate::of(Kind::Int, 0), item),
                    _ => (Estimate::of(Kind::Dyn, 0), Estimate::of(Kind::Dyn, 0)),
                };
                self.scope.push((all.iter_var.clone(), key));
                self.scope.push((second.clone(), value));
            }
        }
        let condition = self.known(&all.loop_cond);
        let step = self.known(&all.loop_step);
        self.scope.truncate(depth + 1);
        // The accumulator has the type of the step's result.
        self.scope[depth].1.kind = step.kind.clone();
        let result = self.known(&all.result);
        self.scope.truncate(depth);
        estimate::comprehension(&range, &start, [&condition, &step], &result)
    }
}
