//! Functions over maps, such as `dict` and `merge`.

mod merge;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::function::Type::{Any, Map as Dict, Text};
use crate::function::{Answer, Args, Function, exact, variadic};
use crate::print;
use crate::value::{Element, Value};

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] = &[
    variadic("dict", &[], Any, dict),
    exact("get", &[Dict, Text], |args| {
        Ok(args.map(0)?.get(args.text(1)).map_or_else(|| Value::Text("".into()), Value::bare))
    }),
    exact("set", &[Dict, Text, Any], |args| {
        let map = args.map(0)?;
        args.heap.set(&map, args.text(1).into(), args.any(2).clone())?;
        Ok(Value::Map(map))
    }),
    exact("unset", &[Dict, Text], |args| {
        let map = args.map(0)?;
        map.entries.borrow_mut().remove(args.text(1));
        Ok(Value::Map(map))
    }),
    exact("hasKey", &[Dict, Text], |args| {
        Ok(Value::Bool(args.map(0)?.entries.borrow().contains_key(args.text(1))))
    }),
    variadic("pluck", &[Text], Dict, pluck),
    variadic("keys", &[], Dict, keys),
    exact("values", &[Dict], |args| {
        let values = args.map(0)?.pairs().into_iter().map(|(_, value)| value).collect();
        args.heap.list(Element::Any, values)
    }),
    variadic("pick", &[Dict], Text, |args| kept(args, true)),
    variadic("omit", &[Dict], Text, |args| kept(args, false)),
    variadic("merge", &[Dict], Dict, |args| merge::all(args, false)),
    variadic("mustMerge", &[Dict], Dict, |args| merge::all(args, false)),
    variadic("mergeOverwrite", &[Dict], Dict, |args| merge::all(args, true)),
    variadic("mustMergeOverwrite", &[Dict], Dict, |args| merge::all(args, true)),
    variadic("dig", &[], Any, dig),
];

fn dict(args: &Args) -> Answer {
    let mut entries: BTreeMap<Rc<str>, Value> = BTreeMap::new();
    for pair in args.values.chunks(2) {
        let [key, rest @ ..] = pair else { continue };
        let value = rest.first().cloned().unwrap_or_else(|| Value::Text("".into()));
        entries.insert(print::plain(args.heap, key)?.into(), value);
    }
    args.heap.map(Element::Any, entries).map(Value::Map)
}

fn pluck(args: &Args) -> Answer {
    let mut found = Vec::new();
    for at in 1..args.values.len() {
        found.extend(args.map(at)?.get(args.text(0)).map(Value::bare));
    }
    args.heap.list(Element::Any, found)
}

/// Returns the keys of all maps, in the order of the maps and sorted within each map.
fn keys(args: &Args) -> Answer {
    let mut keys = Vec::new();
    for at in 0..args.values.len() {
        keys.extend(args.map(at)?.pairs().into_iter().map(|(key, _)| Value::Text(key)));
    }
    args.heap.list(Element::Text, keys)
}

/// Returns a map of the entries whose keys are in the arguments (`named`), or are not.
fn kept(args: &Args, named: bool) -> Answer {
    let names = args.from(1).iter().filter_map(|name| match name {
        Value::Text(name) => Some(name.clone()),
        _ => None,
    });
    let names: Vec<Rc<str>> = names.collect();
    args.heap.step(names.len())?;
    let pairs = args.map(0)?.pairs();
    let entries = pairs.into_iter().filter(|(key, _)| names.contains(key) == named).collect();
    args.heap.map(Element::Any, entries).map(Value::Map)
}

fn dig(args: &Args) -> Answer {
    let [keys @ .., default, Value::Map(map)] = args.values else {
        return Err("dig needs keys, a default and a map".to_owned());
    };
    if keys.is_empty() {
        return Err("dig needs at least three arguments".to_owned());
    }
    let mut at = Value::Map(map.clone());
    let all_text = keys.iter().all(|key| matches!(key, Value::Text(_)));
    for key in keys {
        let (Value::Text(key), Value::Map(map)) = (key, &at) else {
            return Err("dig: a key is not a string, or its parent is not a map".to_owned());
        };
        if map.element != Element::Any || !all_text {
            return Err("dig: a map on the path has another type than dict".to_owned());
        }
        match map.get(key) {
            Some(value) => at = value.bare(),
            None => return Ok(default.clone()),
        }
    }
    Ok(at)
}
