//! Merging of maps into the first map (`dario.cat/mergo`): `merge` and `mergeOverwrite`.

use crate::function::{Answer, Args};
use crate::value::{Element, Heap, Map, Value, deep};

/// Merges the later maps into the first.
pub fn all(args: &Args, overwrite: bool) -> Answer {
    let mut target = args.map(0)?;
    for at in 1..args.values.len() {
        let source = args.map(at)?;
        if target.nil && !source.nil {
            target = args.heap.map(Element::Any, Default::default())?;
        }
        into(args.heap, &target, &source, overwrite, 0)?;
    }
    Ok(Value::Map(target))
}

fn into(
    heap: &Heap,
    target: &Map,
    source: &Map,
    overwrite: bool,
    depth: usize,
) -> Result<(), String> {
    deep(depth)?;
    for (key, value) in source.pairs() {
        heap.step(1)?;
        if value.is_nil() {
            if overwrite {
                heap.set(target, key, Value::Nil)?;
            }
            continue;
        }
        let old = target.get(&key);
        if let (Some(Value::Map(old)), Value::Map(new)) = (&old, &value) {
            if old.element != new.element {
                return Err("merge: maps of different types".to_owned());
            }
            into(heap, old, new, overwrite, depth + 1)?;
        }
        let is_set = target.get(&key).is_some_and(|old| old.truth());
        let both_maps = matches!((&old, &value), (Some(Value::Map(_)), Value::Map(_))) && is_set;
        let is_list = matches!(value, Value::List(_));
        if !both_maps && (overwrite || !is_set || (is_list && old.is_none())) {
            heap.set(target, key, value)?;
        }
    }
    Ok(())
}
