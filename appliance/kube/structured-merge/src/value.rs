//! Comparison of JSON values: a total order in which 1 and 1.0 are equal (structured-merge-diff,
//! `value/value.go`).

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

/// Maximum nesting of a typed value and of a set of fields; JSON parsers stop at 128.
pub const MAX_DEPTH: usize = 128;

/// Returns true if two values are equal; integers and floats are compared as numbers.
pub(crate) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare_numbers(one, other).is_eq(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|two| equal(one, two)))
        }
        _ => one == other,
    }
}

/// Compares two values. Order of the types: numbers, strings, booleans, arrays, objects, null.
pub(crate) fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare_numbers(one, other),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Array(one), Value::Array(other)) => compare_arrays(one, other),
        (Value::Object(one), Value::Object(other)) => compare_objects(one, other),
        _ => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(one: &Number, other: &Number) -> Ordering {
    if let (Some(one), Some(other)) = (one.as_i64(), other.as_i64()) {
        return one.cmp(&other);
    }
    let float = |number: &Number| number.as_f64().unwrap_or_default();
    float(one).partial_cmp(&float(other)).unwrap_or(Ordering::Equal)
}

fn compare_arrays(one: &[Value], other: &[Value]) -> Ordering {
    let mut items = one.iter().zip(other).map(|(one, other)| compare(one, other));
    items.find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
}

/// Compares objects key by key, in the order of the keys. An object without the next key of the
/// other is greater, unless it has no further keys.
fn compare_objects(one: &Map<String, Value>, other: &Map<String, Value>) -> Ordering {
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for (at, key) in keys.into_iter().enumerate() {
        let order = match (one.get(key), other.get(key)) {
            _ if at == one.len() => Ordering::Less,
            _ if at == other.len() => Ordering::Greater,
            (None, _) => Ordering::Greater,
            (_, None) => Ordering::Less,
            (Some(one), Some(other)) => compare(one, other),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use serde_json::json;

    use super::{compare, equal};

    #[test]
    fn kinds_of_values_have_an_order() {
        let ascending = [
            json!(-3),
            json!(1),
            json!(1.5),
            json!(2),
            json!(""),
            json!("a"),
            json!("b"),
            json!(false),
            json!(true),
            json!([]),
            json!([1]),
            json!([1, 2]),
            json!([2]),
            json!({}),
            json!({"a": 1}),
            json!({"a": 1, "b": 0}),
            json!({"a": 2}),
            json!(null),
        ];
        for (i, one) in ascending.iter().enumerate() {
            for (j, other) in ascending.iter().enumerate() {
                assert_eq!(compare(one, other), i.cmp(&j), "{one} {other}");
                assert_eq!(equal(one, other), i == j, "{one} {other}");
            }
        }
    }

    #[test]
    fn numbers_are_equal_across_their_forms() {
        assert!(equal(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert_eq!(compare(&json!(1), &json!(1.0)), Ordering::Equal);
        assert_eq!(compare(&json!(u64::MAX), &json!(i64::MAX)), Ordering::Greater);
        assert!(!equal(&json!(9_007_199_254_740_993_i64), &json!(9_007_199_254_740_992_i64)));
    }
}
