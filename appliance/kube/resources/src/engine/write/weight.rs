//! Limits on the number of JSON values in an object. Field ownership is computed value by value on
//! the single writer thread, so an object of a hundred thousand values would delay all other
//! writes.

use schema::FieldError;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::definition::ResourceDefinition;
use crate::engine::Engine;
use crate::status_error::{Reason, StatusError};

/// Maximum items of one list in an object of a compiled-in kind. No real machine needs more.
pub(crate) const MAX_ITEMS: usize = 4096;
/// Maximum values, nested ones included, of an object of any kind except CustomResourceDefinition.
pub(crate) const MAX_VALUES: usize = 20_000;
/// Maximum values including `managedFields`. Each value needs about 2 KiB during a merge.
pub(crate) const MAX_OWNED_VALUES: usize = 50_000;
/// Number of values above which a write of an object needs a permit, see [`HEAVY_AT_ONCE`].
const HEAVY_VALUES: usize = 10_000;
/// Maximum concurrent writes of objects with more than [`HEAVY_VALUES`] values. More such writes
/// wait; smaller objects are not delayed.
pub(in crate::engine) const HEAVY_AT_ONCE: usize = 1;

impl Engine {
    /// Waits for a permit to write a heavy object; returns `None` for an object with at most
    /// [`HEAVY_VALUES`]. The caller holds the permit until the write is done.
    pub(in crate::engine) async fn turn(
        &self,
        object: &Value,
    ) -> Result<Option<SemaphorePermit<'_>>, StatusError> {
        if !has_more_than(object, HEAVY_VALUES) {
            return Ok(None);
        }
        let permit = self.inner.heavy.acquire().await;
        permit.map(Some).map_err(|error| StatusError::internal("wait to write an object", &error))
    }
}

/// Makes the semaphore for heavy objects of an engine.
pub(in crate::engine) fn turns() -> Semaphore {
    Semaphore::new(HEAVY_AT_ONCE)
}

/// Returns true if `value`, nested values included, has more values than `limit`.
fn has_more_than(value: &Value, limit: usize) -> bool {
    let mut count = 0;
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        count += 1;
        if count + waiting.len() > limit {
            return true;
        }
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(fields) => waiting.extend(fields.values()),
            _ => {}
        }
    }
    false
}

/// Refuses an object with more than [`MAX_VALUES`] values, and an object of a compiled-in kind with
/// a list longer than [`MAX_ITEMS`]. A limit that `old` already exceeds is not checked.
///
/// # Errors
/// 413 for too many values, 422 for a list that is too long.
pub(in crate::engine) fn check_items(
    definition: &ResourceDefinition,
    name: &str,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), StatusError> {
    let is_too_much = |object: &Value| has_more_than(object, MAX_VALUES);
    if !definition.defines_kinds && is_too_much(object) && !old.is_some_and(is_too_much) {
        let message = format!("the object has more than {MAX_VALUES} values, which is the limit");
        let reason = Reason::RequestEntityTooLarge;
        return Err(StatusError::about(reason, definition, name, message));
    }
    if definition.origin.is_some() {
        // The kind's own definition limits the length of lists.
        return Ok(());
    }
    match too_long(object) {
        Some((path, items)) if old.and_then(too_long).is_none() => {
            let limit = i64::try_from(MAX_ITEMS).unwrap_or(i64::MAX);
            let error = FieldError::too_many(path, items, limit);
            Err(StatusError::invalid(definition, name, &[error]))
        }
        _ => Ok(()),
    }
}

/// Refuses a write that changes `managedFields` if `new` has more than [`MAX_OWNED_VALUES`] values.
///
/// # Errors
/// 413 if the object is too large.
pub(in crate::engine) fn check_owners(
    definition: &ResourceDefinition,
    name: &str,
    old: &Value,
    new: &Value,
) -> Result<(), StatusError> {
    let is_same = old["metadata"]["managedFields"] == new["metadata"]["managedFields"];
    if definition.defines_kinds || is_same || !has_more_than(new, MAX_OWNED_VALUES) {
        return Ok(());
    }
    let message = format!(
        "the object and its managedFields have more than {MAX_OWNED_VALUES} values, which is the \
         limit: use fewer field managers"
    );
    Err(StatusError::about(Reason::RequestEntityTooLarge, definition, name, message))
}

/// Returns path and length of a list longer than [`MAX_ITEMS`]; `None` if there is no such list.
fn too_long(object: &Value) -> Option<(String, usize)> {
    let mut waiting = vec![(String::new(), object)];
    while let Some((path, value)) = waiting.pop() {
        match value {
            Value::Array(items) if items.len() > MAX_ITEMS => return Some((path, items.len())),
            Value::Array(items) => waiting.extend(
                items
                    .iter()
                    .enumerate()
                    .filter(|(_, item)| is_nested(item))
                    .map(|(at, item)| (format!("{path}[{at}]"), item)),
            ),
            Value::Object(fields) => {
                let nested = fields.iter().filter(|(_, value)| is_nested(value));
                let below = |(key, value)| match path.as_str() {
                    "" => (String::clone(key), value),
                    _ => (format!("{path}.{key}"), value),
                };
                waiting.extend(nested.map(below));
            }
            _ => {}
        }
    }
    None
}

fn is_nested(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{HEAVY_VALUES, MAX_ITEMS, has_more_than, too_long};

    #[test]
    fn values_are_counted_at_every_depth() {
        let flat = json!({ "spec": { "a": vec![0; 7] } });
        assert!(has_more_than(&flat, 9) && !has_more_than(&flat, 10));
        let nested = json!({ "a": vec![json!({ "b": [1, 2] }); HEAVY_VALUES / 4] });
        assert!(has_more_than(&nested, HEAVY_VALUES));
    }

    #[test]
    fn a_list_that_is_too_long_is_named() {
        let list = |count: usize| json!({ "spec": { "parts": [{ "disks": vec![0; count] }] } });
        assert_eq!(too_long(&list(MAX_ITEMS)), None);
        let found = ("spec.parts[0].disks".to_owned(), MAX_ITEMS + 1);
        assert_eq!(too_long(&list(MAX_ITEMS + 1)), Some(found));
    }
}
