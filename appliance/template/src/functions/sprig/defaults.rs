//! Emptiness, defaults, types of values, and JSON.

use super::equal::deep_equal;
use crate::function::Type::{Any, Bool, Text};
use crate::function::{Answer, Args, Function, exact, variadic};
use crate::json::{self, Style};
use crate::value::{Element, Heap, Value, deep};

const COMPACT: Style = Style { html: true, pretty: false };
const PRETTY: Style = Style { html: true, pretty: true };
const RAW: Style = Style { html: false, pretty: false };

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] = &[
    variadic("default", &[Any], Any, |args| {
        Ok(args.from(1).first().filter(|given| given.truth()).unwrap_or(args.any(0)).clone())
    }),
    exact("empty", &[Any], |args| Ok(Value::Bool(!args.any(0).truth()))),
    variadic("coalesce", &[], Any, |args| {
        Ok(args.values.iter().find(|value| value.truth()).cloned().unwrap_or(Value::Nil))
    }),
    variadic("all", &[], Any, |args| Ok(Value::Bool(args.values.iter().all(Value::truth)))),
    variadic("any", &[], Any, |args| Ok(Value::Bool(args.values.iter().any(Value::truth)))),
    exact("ternary", &[Any, Any, Bool], |args| {
        Ok(args.any(if args.bool(2) { 0 } else { 1 }).clone())
    }),
    exact("deepCopy", &[Any], copied),
    exact("mustDeepCopy", &[Any], copied),
    exact("deepEqual", &[Any, Any], |args| {
        deep_equal(args.heap, args.any(0), args.any(1), 0).map(Value::Bool)
    }),
    exact("typeOf", &[Any], |args| args.made(args.any(0).type_name())),
    exact("typeIs", &[Text, Any], |args| Ok(Value::Bool(args.text(0) == args.any(1).type_name()))),
    exact("typeIsLike", &[Text, Any], |args| {
        let (wanted, is) = (args.text(0), args.any(1).type_name());
        Ok(Value::Bool(wanted == is || is.strip_prefix('*') == Some(wanted)))
    }),
    exact("kindOf", &[Any], |args| args.made(args.any(0).kind_name())),
    exact("kindIs", &[Text, Any], |args| Ok(Value::Bool(args.text(0) == args.any(1).kind_name()))),
    exact("fail", &[Text], |args| Err(args.text(0).to_owned())),
    exact(
        "fromJson",
        &[Text],
        |args| Ok(json::read(args.heap, args.text(0)).unwrap_or(Value::Nil)),
    ),
    exact("mustFromJson", &[Text], |args| json::read(args.heap, args.text(0))),
    exact("toJson", &[Any], |args| lenient(args, COMPACT)),
    exact("toPrettyJson", &[Any], |args| lenient(args, PRETTY)),
    exact("toRawJson", &[Any], |args| strict(args, RAW)),
    exact("mustToJson", &[Any], |args| strict(args, COMPACT)),
    exact("mustToPrettyJson", &[Any], |args| strict(args, PRETTY)),
    exact("mustToRawJson", &[Any], |args| strict(args, RAW)),
];

fn strict(args: &Args, style: Style) -> Answer {
    args.made(json::write(args.heap, args.any(0), style)?)
}

/// Encodes a value as JSON; a value that JSON cannot represent becomes an empty text.
fn lenient(args: &Args, style: Style) -> Answer {
    match json::write(args.heap, args.any(0), style) {
        Err(error) if error == json::UNSUPPORTED => args.made(""),
        text => args.made(text?),
    }
}

fn copied(args: &Args) -> Answer {
    if args.any(0).is_nil() {
        return Err("cannot copy nil".to_owned());
    }
    copy(args.heap, args.any(0), 0)
}

fn copy(heap: &Heap, value: &Value, depth: usize) -> Answer {
    deep(depth)?;
    heap.step(1)?;
    match value {
        Value::List(list) => {
            let items = list.items();
            let items = items.iter().map(|item| copy(heap, item, depth + 1));
            let items = items.collect::<Result<Vec<_>, _>>()?;
            if list.nil { heap.nil_list(list.element) } else { heap.list(list.element, items) }
        }
        Value::Map(map) => {
            let entries = map
                .pairs()
                .into_iter()
                .map(|(key, value)| copy(heap, &value, depth + 1).map(|value| (key, value)));
            let entries = entries.collect::<Result<_, String>>()?;
            let copied = heap.map(map.element, entries)?;
            Ok(Value::Map(crate::value::Map { nil: map.nil, ..copied }))
        }
        Value::Version(_) => Err("a version cannot be copied".to_owned()),
        value => Ok(value.clone()),
    }
}

/// Returns the elements of a list, and their type. Other values are an error with Sprig's message.
pub fn items(value: &Value, doing: &str) -> Result<(Vec<Value>, Element), String> {
    match value {
        Value::List(list) => Ok((list.items(), list.element)),
        other => Err(format!("Cannot {doing} on type {}", other.kind_name())),
    }
}
