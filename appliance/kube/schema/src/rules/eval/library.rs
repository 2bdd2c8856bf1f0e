//! Functions of CEL and of Kubernetes' libraries, called through kube-cel with evaluated arguments.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr};
use kube_cel::cel::objects::{Opaque, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, Value as Foreign};

use super::val::Val;

thread_local! {
    static FUNCTIONS: Context<'static> = Context::default().with_all();
}

/// Variable names of the arguments while a function runs.
const NAMES: [&str; 5] = ["@0", "@1", "@2", "@3", "@4"];

/// Calls the function `name`, on `target` if any. The error is cel-go's message if known.
pub(in crate::rules) fn call<'a>(
    name: &str,
    target: Option<&Val<'a>>,
    args: &[Val<'a>],
) -> Result<Val<'a>, String> {
    let target = target.map(Val::to_foreign);
    let args = args.iter().map(Val::to_foreign).collect();
    invoke(name, target, args).map(Val::from_foreign).map_err(|error| words(&error))
}

/// Calls a conversion function with one string; `None` if the string does not have the syntax.
pub(in crate::rules) fn convert(name: &str, text: &str) -> Option<Foreign> {
    invoke(name, None, vec![Foreign::from(text)]).ok()
}

pub(in crate::rules) fn optional<'a>(opaque: &Arc<dyn Opaque>) -> Val<'a> {
    let value = Foreign::Opaque(Arc::clone(opaque));
    let inner = <&OptionalValue>::try_from(&value).ok().and_then(OptionalValue::value);
    Val::Optional(inner.map(|inner| std::rc::Rc::new(Val::from_foreign(inner.clone()))))
}

fn invoke(
    name: &str,
    target: Option<Foreign>,
    args: Vec<Foreign>,
) -> Result<Foreign, ExecutionError> {
    if args.len() >= NAMES.len() {
        return Err(ExecutionError::NoSuchOverload);
    }
    FUNCTIONS.with(|functions| {
        let mut scope = functions.new_inner_scope();
        let ident = |name: &str| IdedExpr { id: 0, expr: Expr::Ident(name.to_owned()) };
        let mut call = CallExpr { func_name: name.to_owned(), target: None, args: Vec::new() };
        let mut names = NAMES.into_iter();
        let mut bind = |value: Foreign| {
            let name = names.next().unwrap_or_default();
            scope.add_variable_from_value(name, value);
            ident(name)
        };
        call.target = target.map(|target| Box::new(bind(target)));
        call.args = args.into_iter().map(&mut bind).collect();
        let call = IdedExpr { id: 0, expr: Expr::Call(call) };
        // A library may panic on extreme values; such a panic only fails the rule.
        let resolved = catch_unwind(AssertUnwindSafe(|| scope.resolve(&call)));
        resolved.unwrap_or_else(|_| Err(ExecutionError::function_error(name, "out of range")))
    })
}

fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("undeclared reference to '{name}'"),
        ExecutionError::NoSuchOverload
        | ExecutionError::InvalidArgumentCount { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::MissingArgumentOrTarget => NO_OVERLOAD.to_owned(),
        other => other.to_string(),
    }
}

/// Message of cel-go for arguments that no overload of a function accepts.
pub(in crate::rules) const NO_OVERLOAD: &str = "no such overload";
