//! Built-in functions of Go templates (`text/template`, funcs.go).

use super::{compare, escape};
use crate::function::Type::{Any, Reflect, Text};
use crate::function::{Answer, Args, Function, exact, variadic};
use crate::print;
use crate::value::{Element, Value};

/// Go functions that templates can call. `exec` runs `and` and `or`, because they may stop early.
pub static FUNCTIONS: &[Function] = &[
    variadic("and", &[Reflect], Reflect, |args| Ok(args.any(0).clone())),
    variadic("or", &[Reflect], Reflect, |args| Ok(args.any(0).clone())),
    exact("not", &[Reflect], |args| Ok(Value::Bool(!args.any(0).truth()))),
    variadic("call", &[Reflect], Reflect, |args| {
        Err(format!("a value of type {} is not a function", args.any(0).type_name()))
    }),
    exact("len", &[Reflect], len),
    variadic("index", &[Reflect], Reflect, index),
    variadic("print", &[], Any, |args| args.made(print::sprint(args.heap, args.values)?)),
    variadic("println", &[], Any, |args| args.made(print::sprintln(args.heap, args.values)?)),
    variadic("printf", &[Text], Any, |args| {
        args.made(print::sprintf(args.heap, args.text(0), args.from(1))?)
    }),
    variadic("html", &[], Any, escape::html),
    variadic("js", &[], Any, escape::js),
    variadic("urlquery", &[], Any, escape::urlquery),
    variadic("eq", &[Reflect], Reflect, |args| {
        compare::equal(args.any(0), args.from(1)).map(Value::Bool)
    }),
    exact("ne", &[Reflect, Reflect], |args| {
        compare::equal(args.any(0), args.from(1)).map(|equal| Value::Bool(!equal))
    }),
    exact("lt", &[Reflect, Reflect], |args| less(args).map(Value::Bool)),
    exact("ge", &[Reflect, Reflect], |args| less(args).map(|less| Value::Bool(!less))),
    exact("le", &[Reflect, Reflect], |args| less_or_equal(args).map(Value::Bool)),
    exact("gt", &[Reflect, Reflect], |args| less_or_equal(args).map(|it| Value::Bool(!it))),
];

fn less(args: &Args) -> Result<bool, String> {
    compare::less(args.any(0), args.any(1))
}

/// Returns true if the first argument is less than or equal to the second; false if one is NaN.
fn less_or_equal(args: &Args) -> Result<bool, String> {
    Ok(less(args)? || compare::equal(args.any(0), args.from(1))?)
}

fn len(args: &Args) -> Answer {
    let count = match args.any(0) {
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.entries.borrow().len(),
        other => return Err(format!("len of type {}", other.type_name())),
    };
    Ok(Value::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn index(args: &Args) -> Answer {
    let mut item = args.any(0).clone();
    if item.is_nil() {
        return Err("index of untyped nil".to_owned());
    }
    for key in args.from(1) {
        item = match (&item, key) {
            (Value::Text(text), key) => {
                let at = position(key)?;
                let byte = text.as_bytes().get(at).ok_or_else(|| out_of_range(at))?;
                Value::Byte(*byte)
            }
            (Value::List(list), key) => {
                let at = position(key)?;
                list.get(at).ok_or_else(|| out_of_range(at))?
            }
            (Value::Map(map), Value::Text(key)) => match (map.get(key), map.element) {
                (Some(value), _) => value,
                (None, Element::Text) => Value::Text("".into()),
                (None, _) => Value::Hollow,
            },
            (Value::Map(_), key) if key.is_nil() => {
                return Err("value is nil; should be of type string".to_owned());
            }
            (Value::Map(_), key) => {
                return Err(format!("value has type {}; should be string", key.type_name()));
            }
            (item, _) if item.is_nil() => return Err("index of nil pointer".to_owned()),
            (item, _) => return Err(format!("can't index item of type {}", item.type_name())),
        };
    }
    Ok(item)
}

fn position(key: &Value) -> Result<usize, String> {
    let number = match key {
        Value::Int(number) | Value::Int64(number) => *number,
        Value::Byte(byte) => i64::from(*byte),
        Value::Word(number) => number.cast_signed(),
        key if key.is_nil() => return Err("cannot index slice/array with nil".to_owned()),
        key => return Err(format!("cannot index slice/array with type {}", key.type_name())),
    };
    usize::try_from(number).map_err(|_| format!("index out of range: {number}"))
}

fn out_of_range(at: usize) -> String {
    format!("index out of range: {at}")
}
