//! Function calls. CEL's own functions and the functions of lists, strings and quantities are
//! implemented here; other libraries are called through kube-cel.

use std::rc::Rc;

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr};

use super::library::{self, NO_OVERLOAD};
use super::quantity::Quantity;
use super::val::Val;
use super::weight::weight;
use super::{CHARACTERS_PER_UNIT, Evaluated, Evaluator, PER_RULE_COST, Stop};
use super::{lists, texts};
use crate::text::pattern::Pattern;

/// Cost units of compiling a regular expression, which takes some thousand steps.
const COMPILING_COST: u64 = 2_000;
/// Maximum memory of a rule's regular expression, in bytes.
const MAX_PATTERN_BYTES: usize = 512 * 1024;
/// Maximum number of regular expressions in the cache of one evaluation.
const MAX_PATTERNS: usize = 16;

/// Maximum length of a URL in bytes, because reading its parts has no further cost.
const MAX_URL_BYTES: usize = 64 * 1024;

fn no_overload<T>() -> Result<T, Stop> {
    Err(Stop::Failed(NO_OVERLOAD.to_owned()))
}

impl<'r, 'a> Evaluator<'r, 'a> {
    pub(super) fn function(&mut self, call: &'r CallExpr) -> Evaluated<'a> {
        let name = call.func_name.as_str();
        let target = match &call.target {
            None => None,
            Some(target) => match self.qualified(target, name) {
                Some(qualified) => return self.plain_call(&qualified, &call.args),
                None => Some(self.eval(target)?),
            },
        };
        let Some(target) = target else { return self.plain_call(name, &call.args) };
        if let Val::Optional(inner) = &target {
            return self.optional_call(name, inner.clone(), &call.args);
        }
        let args = self.args(&call.args)?;
        self.charge(name, Some(&target), &args)?;
        match (name, args.as_slice()) {
            ("size", []) => size_of(&target),
            ("matches", [Val::Text(pattern)]) => self.matches(&target, pattern),
            ("find", [Val::Text(pattern)]) => self.find(&target, pattern),
            ("findAll", [Val::Text(pattern)]) => self.find_all(&target, pattern, -1),
            ("findAll", [Val::Text(pattern), Val::Int(most)]) => {
                self.find_all(&target, pattern, *most)
            }
            _ => {
                let own = match &target {
                    Val::Text(text) => texts::method(name, text, &args),
                    Val::Quantity(quantity) => Some(of_quantity(name, *quantity, &args)),
                    list => lists::method(name, list, &args),
                };
                match own {
                    Some(result) => Ok(result?),
                    None => self.library_call(name, Some(&target), &args),
                }
            }
        }
    }

    /// Returns a dotted function name such as `lists.range`; `None` if a variable comes first.
    fn qualified(&self, target: &IdedExpr, name: &str) -> Option<String> {
        let Expr::Ident(namespace) = &target.expr else { return None };
        self.lookup(namespace).is_none().then(|| format!("{namespace}.{name}"))
    }

    fn args(&mut self, args: &'r [IdedExpr]) -> Result<Vec<Val<'a>>, Stop> {
        args.iter().map(|arg| self.eval(arg)).collect()
    }

    fn plain_call(&mut self, name: &str, args: &'r [IdedExpr]) -> Evaluated<'a> {
        let args = self.args(args)?;
        self.charge(name, None, &args)?;
        match (name, args.as_slice()) {
            ("size", [value]) => size_of(value),
            ("type", [value]) => Ok(Val::Kind(value.kind_name())),
            ("dyn", [value]) => Ok(value.clone()),
            ("matches", [text, Val::Text(pattern)]) => self.matches(text, pattern),
            ("optional.of", [value]) => Ok(Val::some(value.clone())),
            ("optional.none", []) => Ok(Val::Optional(None)),
            ("string", [value @ Val::Double(_)]) => Ok(Val::text(&value.printed())),
            ("isQuantity", [Val::Text(text)]) => Ok(Val::Bool(Quantity::parse(text).is_some())),
            ("quantity", [Val::Text(text)]) => match Quantity::parse(text) {
                Some(quantity) => Ok(Val::Quantity(quantity)),
                None => Err(Stop::Failed(
                    "quantities must match the regular expression \
                     '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                        .to_owned(),
                )),
            },
            ("url" | "isURL", [Val::Text(text)]) if text.len() > MAX_URL_BYTES => {
                Err(Stop::Failed(format!("URL is longer than {MAX_URL_BYTES} bytes")))
            }
            _ => match lists::function(name, &args) {
                Some(result) => Ok(result?),
                None => self.library_call(name, None, &args),
            },
        }
    }

    /// Calls a library function, and adds the cost of its result.
    fn library_call(
        &mut self,
        name: &str,
        target: Option<&Val<'a>>,
        args: &[Val<'a>],
    ) -> Evaluated<'a> {
        let made = library::call(name, target, args)?;
        self.spend(weight(&made) / CHARACTERS_PER_UNIT)?;
        Ok(made)
    }

    /// Returns a compiled regular expression in Go's syntax, from the cache if possible.
    fn pattern(&mut self, text: &str) -> Result<&Pattern, Stop> {
        if !self.patterns.contains_key(text) {
            self.spend(COMPILING_COST)?;
            if self.patterns.len() >= MAX_PATTERNS {
                self.patterns.clear();
            }
            let compiled = Pattern::within(text, MAX_PATTERN_BYTES);
            self.patterns.insert(text.to_owned(), compiled);
        }
        self.patterns.get(text).ok_or_else(|| Stop::Failed(NO_OVERLOAD.to_owned()))
    }

    fn matches(&mut self, text: &Val<'a>, pattern: &str) -> Evaluated<'a> {
        let Val::Text(text) = text else { return no_overload() };
        let compiled = self.pattern(pattern)?;
        match compiled.error() {
            Some(error) => Err(Stop::Failed(error.to_owned())),
            None => Ok(Val::Bool(compiled.refusal(text).is_none())),
        }
    }

    fn find(&mut self, text: &Val<'a>, pattern: &str) -> Evaluated<'a> {
        let Val::Text(text) = text else { return no_overload() };
        let mut found = self.pattern(pattern)?.matches(text).map_err(illegal)?;
        Ok(Val::text(found.next().unwrap_or_default()))
    }

    /// Returns the matches of the expression, at most `most` unless `most` is negative.
    fn find_all(&mut self, text: &Val<'a>, pattern: &str, most: i64) -> Evaluated<'a> {
        let Val::Text(text) = text else { return no_overload() };
        // Each match is a separate value, and every character may be a match.
        let left = PER_RULE_COST.saturating_sub(self.spent);
        let most = u64::try_from(most).unwrap_or(u64::MAX).min(left.saturating_add(1));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let found = self.pattern(pattern)?.matches(text).map_err(illegal)?;
        let found: Vec<_> = found.take(most).map(Val::text).collect();
        self.spend(found.len() as u64)?;
        Ok(Val::list(found))
    }

    fn optional_call(
        &mut self,
        name: &str,
        inner: Option<Rc<Val<'a>>>,
        args: &'r [IdedExpr],
    ) -> Evaluated<'a> {
        self.spend(1)?;
        match (name, inner, args) {
            ("hasValue", inner, []) => Ok(Val::Bool(inner.is_some())),
            ("value", Some(inner), []) => Ok(inner.as_ref().clone()),
            ("value", None, []) => Err(Stop::Failed("optional.none() dereference".to_owned())),
            ("orValue", Some(inner), [_]) => Ok(inner.as_ref().clone()),
            ("or", Some(inner), [_]) => Ok(Val::Optional(Some(inner))),
            ("orValue" | "or", None, [other]) => self.eval(other),
            ("optMap" | "optFlatMap", None, [_, _]) => Ok(Val::Optional(None)),
            ("optMap" | "optFlatMap", Some(inner), [variable, body]) => {
                let Expr::Ident(variable) = &variable.expr else { return no_overload() };
                self.scope.push((variable, inner.as_ref().clone()));
                let mapped = self.eval(body);
                self.scope.pop();
                match (name, mapped?) {
                    ("optMap", mapped) => Ok(Val::some(mapped)),
                    (_, mapped) => Ok(mapped),
                }
            }
            _ => no_overload(),
        }
    }
}

fn illegal(error: &str) -> Stop {
    Stop::Failed(format!("Illegal regex: {error}"))
}

fn size_of<'a>(value: &Val<'a>) -> Evaluated<'a> {
    match value.size() {
        Some(size) => Ok(Val::Int(i64::try_from(size).unwrap_or(i64::MAX))),
        None => no_overload(),
    }
}

fn of_quantity<'a>(name: &str, own: Quantity, args: &[Val<'a>]) -> Result<Val<'a>, String> {
    let other = match args {
        [Val::Quantity(other)] => Some(*other),
        [Val::Int(other)] if matches!(name, "add" | "sub") => Some(Quantity::from(*other)),
        _ => None,
    };
    let too_large = || "quantity has too many digits".to_owned();
    match (name, args.len(), other) {
        ("isInteger", 0, _) => Ok(Val::Bool(own.is_integer())),
        ("asInteger", 0, _) => match own.integer() {
            Some(integer) => Ok(Val::Int(integer)),
            None => Err("cannot convert value to integer".to_owned()),
        },
        ("asApproximateFloat", 0, _) => Ok(Val::Double(own.float())),
        ("sign", 0, _) => Ok(Val::Int(own.sign())),
        ("add", _, Some(other)) => own.plus(other).map(Val::Quantity).ok_or_else(too_large),
        ("sub", _, Some(other)) => {
            let difference = other.negated().and_then(|other| own.plus(other));
            difference.map(Val::Quantity).ok_or_else(too_large)
        }
        ("isLessThan", _, Some(other)) => Ok(Val::Bool(own < other)),
        ("isGreaterThan", _, Some(other)) => Ok(Val::Bool(own > other)),
        ("compareTo", _, Some(other)) => Ok(Val::Int(own.cmp(&other) as i64)),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}
