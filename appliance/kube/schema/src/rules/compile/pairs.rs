//! Comprehensions with two variables, such as `list.all(i, v, …)`: macros that the parser does not
//! support (cel-go `ext/comprehensions.go`).

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators,
};

/// Name of the accumulator variable of a comprehension, as in the parser's own macros.
const GATHERED: &str = "@result";

/// Expands the macros with two variables in an expression.
pub(super) fn expand(mut expression: IdedExpr) -> IdedExpr {
    each_below(&mut expression, &mut |below| {
        let taken = std::mem::take(below);
        *below = expand(taken);
    });
    let Expr::Call(call) = expression.expr else { return expression };
    match written_out(call) {
        Ok(comprehension) => {
            let expr = Expr::Comprehension(Box::new(comprehension));
            IdedExpr { id: expression.id, expr }
        }
        Err(call) => IdedExpr { id: expression.id, expr: Expr::Call(call) },
    }
}

fn each_below(expression: &mut IdedExpr, visit: &mut dyn FnMut(&mut IdedExpr)) {
    match &mut expression.expr {
        Expr::Call(call) => {
            call.target.as_deref_mut().into_iter().chain(&mut call.args).for_each(visit);
        }
        Expr::Select(select) => visit(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(visit),
        Expr::Comprehension(all) => {
            for part in [
                &mut all.iter_range,
                &mut all.accu_init,
                &mut all.loop_cond,
                &mut all.loop_step,
                &mut all.result,
            ] {
                visit(part);
            }
        }
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    visit(&mut entry.key);
                    visit(&mut entry.value);
                }
            }
        }
        Expr::Struct(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

/// Expands a macro with two variables; returns any other call unchanged as the error.
fn written_out(call: CallExpr) -> Result<ComprehensionExpr, CallExpr> {
    let name = call.func_name.as_str();
    let known = match call.args.len() {
        3 => matches!(name, "all" | "exists" | "existsOne" | "exists_one" | "transformList"),
        4 => name == "transformList",
        _ => false,
    };
    let variables: Vec<String> = call.args.iter().take(2).filter_map(ident_of).collect();
    let ([first, second], true, true) = (variables.as_slice(), known, call.target.is_some()) else {
        return Err(call);
    };
    let (first, second) = (first.clone(), second.clone());
    let CallExpr { func_name, target, args } = call;
    let mut args = args.into_iter().skip(2);
    let body = args.next().unwrap_or_default();
    let transformed = args.next();
    let (start, condition, step, result) = parts(&func_name, body, transformed);
    Ok(ComprehensionExpr {
        iter_range: target.map_or_else(IdedExpr::default, |target| *target),
        iter_var: first,
        iter_var2: Some(second),
        accu_var: GATHERED.to_owned(),
        accu_init: start,
        loop_cond: condition,
        loop_step: step,
        result,
    })
}

/// Returns start value, loop condition, loop step and result of a macro.
fn parts(
    name: &str,
    body: IdedExpr,
    transformed: Option<IdedExpr>,
) -> (IdedExpr, IdedExpr, IdedExpr, IdedExpr) {
    let gathered = || made(Expr::Ident(GATHERED.to_owned()));
    let appended = |item| {
        let list = made(Expr::List(ListExpr::new(vec![item])));
        operator(operators::ADD, vec![gathered(), list])
    };
    match (name, transformed) {
        ("all", _) => (
            flag(true),
            operator(operators::NOT_STRICTLY_FALSE, vec![gathered()]),
            operator(operators::LOGICAL_AND, vec![gathered(), body]),
            gathered(),
        ),
        ("exists", _) => {
            let not = operator(operators::LOGICAL_NOT, vec![gathered()]);
            (
                flag(false),
                operator(operators::NOT_STRICTLY_FALSE, vec![not]),
                operator(operators::LOGICAL_OR, vec![gathered(), body]),
                gathered(),
            )
        }
        ("transformList", Some(transformed)) => (
            made(Expr::List(ListExpr::new(Vec::new()))),
            flag(true),
            operator(operators::CONDITIONAL, vec![body, appended(transformed), gathered()]),
            gathered(),
        ),
        ("transformList", None) => {
            (made(Expr::List(ListExpr::new(Vec::new()))), flag(true), appended(body), gathered())
        }
        _ => {
            let one = || made(Expr::Literal(LiteralValue::Int(1.into())));
            let zero = made(Expr::Literal(LiteralValue::Int(0.into())));
            let more = operator(operators::ADD, vec![gathered(), one()]);
            (
                zero,
                flag(true),
                operator(operators::CONDITIONAL, vec![body, more, gathered()]),
                operator(operators::EQUALS, vec![gathered(), one()]),
            )
        }
    }
}

fn ident_of(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        _ => None,
    }
}

fn made(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn flag(flag: bool) -> IdedExpr {
    made(Expr::Literal(LiteralValue::Boolean(flag.into())))
}

fn operator(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    made(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
}
