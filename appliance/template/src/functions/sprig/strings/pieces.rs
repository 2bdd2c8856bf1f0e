//! Functions that split and join texts.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::function::Type::{Any, Int, Text};
use crate::function::{Answer, Args, Function, exact};
use crate::limits::LIST_ITEMS_MAX;
use crate::print;
use crate::value::{Element, Heap, Value, may_make};

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] = &[
    exact("split", &[Text, Text], |args| numbered(args, &split(args.text(1), args.text(0), -1)?)),
    exact("splitn", &[Text, Int, Text], |args| {
        numbered(args, &split(args.text(2), args.text(0), args.int(1))?)
    }),
    exact("splitList", &[Text, Text], |args| {
        args.heap.texts(split(args.text(1), args.text(0), -1)?)
    }),
    exact("toStrings", &[Any], |args| texts(args.heap, args.any(0))),
    exact("join", &[Text, Any], join),
];

/// Splits a text as `strings.SplitN`; a negative `limit` means no limit.
fn split<'a>(text: &'a str, separator: &str, limit: i64) -> Result<Vec<&'a str>, String> {
    let limit = if limit < 0 { usize::MAX } else { usize::try_from(limit).unwrap_or(0) };
    if limit == 0 {
        return Ok(Vec::new());
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    let too_many = || format!("a list of more than {LIST_ITEMS_MAX} elements");
    while pieces.len() + 1 < limit {
        let found = match separator {
            "" => rest.chars().next().map(|c| (c.len_utf8(), c.len_utf8())),
            _ => rest.find(separator).map(|at| (at, at + separator.len())),
        };
        let Some((end, next)) = found else { break };
        if separator.is_empty() && next == rest.len() {
            break;
        }
        pieces.push(&rest[..end]);
        rest = &rest[next..];
        if pieces.len() > LIST_ITEMS_MAX {
            return Err(too_many());
        }
    }
    if !(separator.is_empty() && rest.is_empty()) {
        pieces.push(rest);
    }
    Ok(pieces)
}

/// Returns a map of the pieces: `_0`, `_1`, ….
fn numbered(args: &Args, pieces: &[&str]) -> Answer {
    let mut entries: BTreeMap<Rc<str>, Value> = BTreeMap::new();
    for (at, piece) in pieces.iter().enumerate() {
        entries.insert(format!("_{at}").into(), args.heap.text(*piece)?);
    }
    args.heap.map(Element::Text, entries).map(Value::Map)
}

/// Converts a value to a list of strings, without nil elements.
pub fn texts(heap: &Heap, value: &Value) -> Answer {
    let list = match value {
        Value::List(list) if list.element == Element::Text => return Ok(value.clone()),
        Value::List(list) => list.items(),
        value if value.is_nil() => Vec::new(),
        value => vec![value.clone()],
    };
    let mut texts = Vec::new();
    for item in list.iter().filter(|item| !item.is_nil()) {
        texts.push(match item {
            Value::Text(text) => text.clone(),
            item => print::plain(heap, item)?.into(),
        });
    }
    heap.texts(texts)
}

fn join(args: &Args) -> Answer {
    let Value::List(list) = texts(args.heap, args.any(1))? else { return Ok(Value::Nil) };
    let mut text = String::new();
    for (at, item) in list.items().iter().enumerate() {
        if let Value::Text(item) = item {
            let separator = if at > 0 { args.text(0) } else { "" };
            may_make(text.len() + separator.len() + item.len())?;
            text.push_str(separator);
            text.push_str(item);
        }
    }
    args.made(text)
}
