//! Merging of lists, and the resulting order of their elements.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{BAD_ORDER, DIRECTIVE, Merge, Mismatch};

/// Identity of an element: the text of its merge key's value, or of a scalar (empty `key`).
fn identity(item: &Value, key: &str) -> Result<String, Mismatch> {
    if key.is_empty() {
        return Ok(item.to_string());
    }
    let value = item.as_object().and_then(|map| map.get(key));
    value.map(Value::to_string).ok_or(Mismatch::Unprocessable)
}

fn identities(items: &[Value], key: &str) -> Result<HashMap<String, usize>, Mismatch> {
    let mut found = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        found.entry(identity(item, key)?).or_insert(at);
    }
    Ok(found)
}

/// Returns `original` without the scalars in `gone`.
pub(super) fn without(original: Vec<Value>, gone: &[Value]) -> Vec<Value> {
    let gone: HashSet<String> = gone.iter().map(Value::to_string).collect();
    original.into_iter().filter(|item| !gone.contains(&item.to_string())).collect()
}

/// Returns the union of two lists of scalars, without duplicates.
pub(super) fn union(original: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, Mismatch> {
    if original.iter().chain(&patch).any(|item| item.is_array() || item.is_object()) {
        return Err(Mismatch::Unprocessable);
    }
    let mut seen = HashSet::new();
    let both = original.iter().chain(&patch).cloned();
    let merged = both.filter(|item| seen.insert(item.to_string())).collect();
    in_order(merged, &patch, &original, "")
}

/// Merges elements with the same value of `key`. An element of the patch can delete the element
/// with the same key, or replace the whole list (`$patch`).
pub(super) fn merge(
    merge: &Merge<'_>,
    original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    path: &str,
) -> Result<Vec<Value>, Mismatch> {
    let mut additions: Vec<Map<String, Value>> = Vec::new();
    let (mut deleted, mut replaces) = (HashSet::new(), false);
    for item in patch {
        let Value::Object(item) = item else { return Err(Mismatch::Unprocessable) };
        match item.get(DIRECTIVE).map(|directive| directive.as_str()) {
            None => additions.push(item),
            Some(Some("delete")) => {
                deleted.insert(identity(&Value::Object(item), key)?);
            }
            Some(Some("replace")) => replaces = true,
            Some(_) => return Err(Mismatch::Unprocessable),
        }
    }
    if replaces {
        return Ok(additions.into_iter().map(Value::Object).collect());
    }
    let mut merged = Vec::with_capacity(original.len());
    for item in original {
        if !deleted.contains(&identity(&item, key)?) {
            merged.push(item);
        }
    }
    let before = merged.clone();
    let mut places = identities(&merged, key)?;
    let mut order = Vec::with_capacity(additions.len());
    for addition in additions {
        let addition = Value::Object(addition);
        let name = identity(&addition, key)?;
        order.push(addition.clone());
        let Value::Object(addition) = addition else { continue };
        match places.get(&name).and_then(|at| merged.get_mut(*at)) {
            Some(place) => {
                let Value::Object(old) = place.take() else { return Err(Mismatch::Unprocessable) };
                *place = Value::Object(merge.object(old, addition, path)?);
            }
            None => {
                places.insert(name, merged.len());
                merged.push(Value::Object(addition));
            }
        }
    }
    in_order(merged, &order, &before, key)
}

/// Checks that the elements of a patch have the order of its `$setElementOrder`.
pub(super) fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), Mismatch> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut order = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let wanted = identity(item, key)?;
        loop {
            let Some(next) = order.next() else { return Err(Mismatch::Format(BAD_ORDER)) };
            if identity(next, key)? == wanted {
                break;
            }
        }
    }
    Ok(())
}

/// Sorts the items in `order` by that order, and the other items by their order in `before`. Both
/// groups are interleaved, so that items stay near their previous positions.
pub(super) fn in_order(
    items: Vec<Value>,
    order: &[Value],
    before: &[Value],
    key: &str,
) -> Result<Vec<Value>, Mismatch> {
    let (places, earlier) = (identities(order, key)?, identities(before, key)?);
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in items {
        let name = identity(&item, key)?;
        let was = earlier.get(&name).copied();
        match places.get(&name) {
            Some(place) => named.push((*place, was, item)),
            None => others.push((was.unwrap_or(usize::MAX), was, item)),
        }
    }
    named.sort_by_key(|(place, ..)| *place);
    others.sort_by_key(|(place, ..)| *place);
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut woven = Vec::new();
    loop {
        let first = match (named.peek(), others.peek()) {
            (None, None) => return Ok(woven),
            (Some((_, Some(one), _)), Some((_, Some(other), _))) if other < one => others.next(),
            (None, Some(_)) => others.next(),
            (Some(_), _) => named.next(),
        };
        woven.extend(first.map(|(.., item)| item));
    }
}
