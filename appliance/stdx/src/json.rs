//! Limits and clean-up of JSON values, for every crate.

use serde_json::Value;

/// Returns true if a value is nested at most `levels` deep. Deeper levels are not visited.
pub fn is_within(value: &Value, levels: usize) -> bool {
    let inner = levels.checked_sub(1);
    match value {
        Value::Array(items) => {
            inner.is_some_and(|inner| items.iter().all(|item| is_within(item, inner)))
        }
        Value::Object(map) => {
            inner.is_some_and(|inner| map.values().all(|item| is_within(item, inner)))
        }
        _ => true,
    }
}

/// Returns true if the field names on the path to each value have at most `bytes` bytes in total.
pub fn has_paths_within(value: &Value, bytes: usize) -> bool {
    match value {
        Value::Array(items) => items.iter().all(|item| has_paths_within(item, bytes)),
        Value::Object(map) => map.iter().all(|(name, item)| {
            bytes.checked_sub(name.len()).is_some_and(|left| has_paths_within(item, left))
        }),
        _ => true,
    }
}

/// Removes null fields of objects at any depth. Null items of arrays stay.
pub fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{drop_nulls, has_paths_within, is_within};

    #[test]
    fn depth_is_counted_in_arrays_and_objects() {
        let value = json!({ "a": [1, { "b": null }] });
        assert!(is_within(&value, 3));
        assert!(!is_within(&value, 2));
        assert!(is_within(&json!(1), 0));
    }

    #[test]
    fn names_on_the_way_are_added_up() {
        let value = json!({ "a": [1, { "bcd": null, "e": { "fg": 1 } }], "hijk": 0 });
        assert!(has_paths_within(&value, 4));
        assert!(!has_paths_within(&value, 3));
        assert!(has_paths_within(&json!([1]), 0));
    }

    #[test]
    fn null_fields_go_and_null_items_stay() {
        let mut value = json!({ "a": null, "b": [null, { "c": null }] });
        drop_nulls(&mut value);
        assert_eq!(value, json!({ "b": [null, {}] }));
    }
}
