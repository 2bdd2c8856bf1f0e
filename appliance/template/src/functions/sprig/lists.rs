//! Functions over lists, such as `first` and `without`.

use super::defaults::items;
use super::equal::is_in;
use super::numbers::cast;
use super::strings::pieces::texts;
use crate::function::Type::{Any, Int};
use crate::function::{Answer, Args, Function, exact, variadic};
use crate::limits::LIST_ITEMS_MAX;
use crate::print;
use crate::value::{Element, Value};

/// Sprig functions that this file implements. In Sprig, variants with the prefix `must` return an
/// error instead of a panic; here both return an error.
pub static FUNCTIONS: &[Function] = &[
    variadic("list", &[], Any, |args| args.heap.list(Element::Any, args.values.to_vec())),
    variadic("tuple", &[], Any, |args| args.heap.list(Element::Any, args.values.to_vec())),
    exact("append", &[Any, Any], append),
    exact("mustAppend", &[Any, Any], append),
    exact("push", &[Any, Any], append),
    exact("mustPush", &[Any, Any], append),
    exact("prepend", &[Any, Any], prepend),
    exact("mustPrepend", &[Any, Any], prepend),
    exact("first", &[Any], first),
    exact("mustFirst", &[Any], first),
    exact("last", &[Any], last),
    exact("mustLast", &[Any], last),
    exact("rest", &[Any], |args| without_end(args, 1, 0)),
    exact("mustRest", &[Any], |args| without_end(args, 1, 0)),
    exact("initial", &[Any], |args| without_end(args, 0, 1)),
    exact("mustInitial", &[Any], |args| without_end(args, 0, 1)),
    exact("reverse", &[Any], reverse),
    exact("mustReverse", &[Any], reverse),
    exact("compact", &[Any], compact),
    exact("mustCompact", &[Any], compact),
    exact("uniq", &[Any], uniq),
    exact("mustUniq", &[Any], uniq),
    variadic("without", &[Any], Any, without),
    variadic("mustWithout", &[Any], Any, without),
    exact("has", &[Any, Any], has),
    exact("mustHas", &[Any, Any], has),
    variadic("slice", &[Any], Any, slice),
    variadic("mustSlice", &[Any], Any, slice),
    exact("chunk", &[Int, Any], chunk),
    exact("mustChunk", &[Int, Any], chunk),
    variadic("concat", &[], Any, concat),
    exact("sortAlpha", &[Any], sort_alpha),
];

fn append(args: &Args) -> Answer {
    let (mut all, _) = items(args.any(0), "push")?;
    all.push(args.any(1).clone());
    args.heap.list(Element::Any, all)
}

fn prepend(args: &Args) -> Answer {
    let (mut all, _) = items(args.any(0), "prepend")?;
    all.insert(0, args.any(1).clone());
    args.heap.list(Element::Any, all)
}

fn first(args: &Args) -> Answer {
    let (all, _) = items(args.any(0), "find first")?;
    Ok(all.first().cloned().unwrap_or(Value::Nil))
}

fn last(args: &Args) -> Answer {
    let (all, _) = items(args.any(0), "find last")?;
    Ok(all.last().cloned().unwrap_or(Value::Nil))
}

/// Returns the list without `first` and `last` elements at its ends; nil if the list is empty.
fn without_end(args: &Args, first: usize, last: usize) -> Answer {
    let (all, _) = items(args.any(0), "find rest or initial")?;
    if all.is_empty() {
        return args.heap.nil_list(Element::Any);
    }
    args.heap.list(Element::Any, all[first..all.len() - last].to_vec())
}

fn reverse(args: &Args) -> Answer {
    let (all, _) = items(args.any(0), "find reverse")?;
    args.heap.list(Element::Any, all.into_iter().rev().collect())
}

fn compact(args: &Args) -> Answer {
    let (all, _) = items(args.any(0), "compact")?;
    args.heap.list(Element::Any, all.into_iter().filter(Value::truth).collect())
}

fn uniq(args: &Args) -> Answer {
    let (all, _) = items(args.any(0), "find uniq")?;
    let mut kept = Vec::new();
    for item in all {
        if !is_in(args.heap, &kept, &item)? {
            kept.push(item);
        }
    }
    args.heap.list(Element::Any, kept)
}

fn without(args: &Args) -> Answer {
    let (all, _) = items(args.any(0), "find without")?;
    let mut kept = Vec::new();
    for item in all {
        if !is_in(args.heap, args.from(1), &item)? {
            kept.push(item);
        }
    }
    args.heap.list(Element::Any, kept)
}

fn has(args: &Args) -> Answer {
    if args.any(1).is_nil() {
        return Ok(Value::Bool(false));
    }
    let (all, _) = items(args.any(1), "find has")?;
    is_in(args.heap, &all, args.any(0)).map(Value::Bool)
}

fn slice(args: &Args) -> Answer {
    let Value::List(list) = args.any(0) else {
        let kind = args.any(0).kind_name();
        return Err(format!("list should be type of slice or array but {kind}"));
    };
    if list.len() == 0 {
        return Ok(Value::Nil);
    }
    let index = |at: usize, default: usize| match args.from(1).get(at) {
        Some(value) => usize::try_from(cast::int(value)).ok(),
        None => Some(default),
    };
    let window = match (index(0, 0), index(1, list.len())) {
        (Some(from), Some(to)) if to <= LIST_ITEMS_MAX => list.window(from, to),
        _ => None,
    };
    window.map(Value::List).ok_or_else(|| "slice bounds out of range".to_owned())
}

/// Splits a list into chunks; computes their number with floats, so that errors are as in Sprig.
fn chunk(args: &Args) -> Answer {
    let (all, _) = items(args.any(1), "chunk")?;
    let (length, size) = (all.len() as f64, args.int(0) as f64);
    let count = cast::truncated(((length - 1.0) / size).floor() + 1.0);
    let out_of_range = || "makeslice: len out of range".to_owned();
    let count = usize::try_from(count).map_err(|_| out_of_range())?;
    let mut chunks = Vec::new();
    for at in 0..count {
        let mut length_here = args.int(0);
        if at + 1 == count {
            length_here = match cast::truncated((length % size).floor()) {
                0 => args.int(0),
                rest => rest,
            };
        }
        let wanted = usize::try_from(length_here).map_err(|_| out_of_range())?;
        let from = at * usize::try_from(args.int(0)).unwrap_or(0);
        let items = all.get(from..from + wanted).ok_or_else(out_of_range)?;
        chunks.push(args.heap.list(Element::Any, items.to_vec())?);
    }
    args.heap.list(Element::List, chunks)
}

fn concat(args: &Args) -> Answer {
    let mut all = Vec::new();
    for list in args.values {
        all.extend(items(list, "concat")?.0);
        if all.len() > LIST_ITEMS_MAX {
            return Err(format!("a list of more than {LIST_ITEMS_MAX} elements"));
        }
    }
    if all.is_empty() {
        return args.heap.nil_list(Element::Any);
    }
    args.heap.list(Element::Any, all)
}

/// Sorts a list of strings in place, for every reference to it. Other values become a new list.
fn sort_alpha(args: &Args) -> Answer {
    match args.any(0) {
        Value::List(list) => {
            args.heap.step(list.len() * 4)?;
            let Value::List(sorted) = texts(args.heap, args.any(0))? else {
                return Ok(Value::Nil);
            };
            sorted.sort_texts();
            Ok(Value::List(sorted))
        }
        other => args.heap.texts([print::plain(args.heap, other)?]),
    }
}
