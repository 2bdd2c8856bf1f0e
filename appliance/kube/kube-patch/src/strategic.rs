//! Strategic merge patch: merges some lists of Kubernetes' own kinds by a key, with the rules of
//! `k8s.io/apimachinery` `pkg/util/strategicpatch`.

mod list;
mod strategy;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde_json::{Map, Value};
use stdx::json::{drop_nulls, is_within};

use self::strategy::Strategy;
use crate::MAX_DEPTH;
use crate::error::{PatchError, Reason};

/// Directive `replace` or `delete` for the object or list element that contains the directive.
const DIRECTIVE: &str = "$patch";
/// Directive with the names of an object's fields to keep; other fields are removed.
const RETAIN: &str = "$retainKeys";
/// Directive `$deleteFromPrimitiveList/LIST`: scalars to remove from the list.
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
/// Directive `$setElementOrder/LIST`: order of the list's elements.
const SET_ORDER: &str = "$setElementOrder";

/// Reason why a patch cannot be applied.
#[derive(Debug, PartialEq, Eq)]
enum Mismatch {
    /// The format of the patch is invalid.
    Format(&'static str),
    /// The patch cannot be applied to the target object.
    Unprocessable,
    /// The result would be nested deeper than [`MAX_DEPTH`].
    TooLarge,
}

impl Mismatch {
    fn status(self) -> PatchError {
        match self {
            Self::Format(why) => PatchError::bad_request(why),
            Self::Unprocessable => PatchError::rejected(),
            Self::TooLarge => {
                PatchError::new(Reason::RequestEntityTooLarge, "the patch is too complex")
            }
        }
    }
}

const BAD_LIST: &str = "invalid patch format of primitive list";
const BAD_ORDER: &str = "invalid patch format of setElementOrder list";
const BAD_RETAIN: &str = "invalid patch format of retainKeys";

/// Returns `target`, an object of Kubernetes' own kind `kind`, merged with `patch`.
///
/// # Errors
/// 400 for an invalid patch, 422 for a patch that cannot be applied to the object.
pub fn apply(kind: &str, target: Value, patch: &Value) -> Result<Value, PatchError> {
    let (Value::Object(target), Value::Object(patch)) = (target, patch.clone()) else {
        return Err(PatchError::bad_request("a strategic merge patch must be a JSON object"));
    };
    let merged = Merge { kind }.object(target, patch, "");
    let merged = Value::Object(merged.map_err(Mismatch::status)?);
    if is_within(&merged, MAX_DEPTH) { Ok(merged) } else { Err(Mismatch::TooLarge.status()) }
}

struct Merge<'a> {
    kind: &'a str,
}

impl Merge<'_> {
    fn object(
        &self,
        mut original: Map<String, Value>,
        mut patch: Map<String, Value>,
        path: &str,
    ) -> Result<Map<String, Value>, Mismatch> {
        if let Some(directive) = patch.remove(DIRECTIVE) {
            return match directive.as_str() {
                Some("replace") => Ok(patch),
                Some("delete") => Ok(Map::new()),
                _ => Err(Mismatch::Unprocessable),
            };
        }
        if let Some(kept) = patch.remove(RETAIN) {
            retain(&mut original, &patch, &kept)?;
        }
        let orders: Vec<String> =
            patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
        for key in orders {
            let order = patch.remove(&key).unwrap_or_default();
            let name = named(&key, SET_ORDER).ok_or(Mismatch::Format(BAD_ORDER))?;
            self.ordered(&mut original, &mut patch, name, order, path)?;
        }
        for (key, value) in patch {
            let (name, deletes) = match key.starts_with(DELETE_FROM) {
                true => (named(&key, DELETE_FROM).ok_or(Mismatch::Format(BAD_LIST))?, true),
                false => (key.as_str(), false),
            };
            self.field(&mut original, name, value, deletes, &join(path, name))?;
        }
        Ok(original)
    }

    fn field(
        &self,
        original: &mut Map<String, Value>,
        name: &str,
        patch: Value,
        deletes: bool,
        path: &str,
    ) -> Result<(), Mismatch> {
        if patch.is_null() {
            original.remove(name);
            return Ok(());
        }
        let merged = match (original.get_mut(name).map(Value::take), patch) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                if strategy::replaces_object(self.kind, path) {
                    Some(Value::Object(new))
                } else {
                    Some(Value::Object(self.object(old, new, path)?))
                }
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                Some(Value::Array(self.list(old, new, deletes, path)?))
            }
            // A deletion from a value that is not a list changes nothing.
            (old, _) if deletes => old,
            (_, mut new) => {
                drop_nulls(&mut new);
                without_directives(new)
            }
        };
        match merged {
            Some(merged) => original.insert(name.to_owned(), merged),
            None => original.remove(name),
        };
        Ok(())
    }

    fn list(
        &self,
        original: Vec<Value>,
        patch: Vec<Value>,
        deletes: bool,
        path: &str,
    ) -> Result<Vec<Value>, Mismatch> {
        match strategy::of_list(self.kind, path) {
            _ if deletes => Ok(list::without(original, &patch)),
            Strategy::Replace => Ok(patch),
            Strategy::Union => list::union(original, patch),
            Strategy::Merge(key) => list::merge(self, original, patch, key, path),
        }
    }

    /// Merges the list `name`, then sorts its elements by `order` (`$setElementOrder`).
    fn ordered(
        &self,
        original: &mut Map<String, Value>,
        patch: &mut Map<String, Value>,
        name: &str,
        order: Value,
        path: &str,
    ) -> Result<(), Mismatch> {
        let path = join(path, name);
        let Value::Array(order) = order else { return Err(Mismatch::Format(BAD_ORDER)) };
        let array = |value: Option<Value>| match value {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(Mismatch::Unprocessable),
        };
        let old = array(original.get(name).cloned())?;
        let new = array(patch.get(name).cloned())?;
        let key = match strategy::of_list(self.kind, &path) {
            Strategy::Merge(key) => key,
            Strategy::Replace | Strategy::Union => "",
        };
        if let Some(new) = &new {
            list::check_order(new, &order, key)?;
        }
        let merged = match (old.clone(), new) {
            (None, None) => return Ok(()),
            (Some(old), None) => old,
            (None, Some(new)) => match without_directives(Value::Array(new)) {
                Some(Value::Array(new)) => new,
                _ => return Ok(()),
            },
            (Some(old), Some(new)) => self.list(old, new, false, &path)?,
        };
        let merged = list::in_order(merged, &order, &old.unwrap_or_default(), key)?;
        original.insert(name.to_owned(), Value::Array(merged));
        patch.remove(name);
        Ok(())
    }
}

/// Removes the fields of `original` that are not in `kept`. The patch must not set other fields.
fn retain(
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    kept: &Value,
) -> Result<(), Mismatch> {
    let kept = kept.as_array().ok_or(Mismatch::Format(BAD_RETAIN))?;
    let kept: HashSet<&str> = kept.iter().filter_map(Value::as_str).collect();
    let is_kept = |name: &str| kept.contains(name);
    let foreign = patch.iter().any(|(name, value)| {
        let directive = name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER);
        !value.is_null() && !directive && !is_kept(name)
    });
    if foreign {
        return Err(Mismatch::Format(BAD_RETAIN));
    }
    original.retain(|name, _| is_kept(name));
    Ok(())
}

/// Returns the list's name in a directive `DIRECTIVE/LIST`; `None` for another key.
fn named<'a>(key: &'a str, directive: &str) -> Option<&'a str> {
    key.strip_prefix(directive)?.strip_prefix('/')
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Returns a value without nested objects that contain `$patch`; `None` if the value itself
/// contains `$patch`.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map.into_iter();
            let kept = kept.filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => {
            Some(Value::Array(items.into_iter().filter_map(without_directives).collect()))
        }
        other => Some(other),
    }
}
