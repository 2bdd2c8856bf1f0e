//! Equality of values, as in `reflect.DeepEqual`.

use crate::value::{Heap, Value, deep};

/// Returns true if two values have the same type and content.
pub fn deep_equal(heap: &Heap, a: &Value, b: &Value, depth: usize) -> Result<bool, String> {
    deep(depth)?;
    heap.step(1)?;
    Ok(match (a, b) {
        (a, b) if a.is_nil() || b.is_nil() => a.is_nil() && b.is_nil(),
        (a, b) if a.type_name() != b.type_name() => false,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a) | Value::Int64(a), Value::Int(b) | Value::Int64(b)) => a == b,
        (Value::Byte(a), Value::Byte(b)) => a == b,
        (Value::Word(a), Value::Word(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Version(a), Value::Version(b)) => a.version == b.version,
        (Value::List(a), Value::List(b)) => {
            if a.nil != b.nil || a.len() != b.len() {
                return Ok(false);
            }
            for at in 0..a.len() {
                let (a, b) = (a.get(at).unwrap_or(Value::Nil), b.get(at).unwrap_or(Value::Nil));
                if !deep_equal(heap, &a, &b, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(a), Value::Map(b)) => {
            let (left, right) = (a.pairs(), b.pairs());
            if a.nil != b.nil || left.len() != right.len() {
                return Ok(false);
            }
            for ((key_a, a), (key_b, b)) in left.iter().zip(&right) {
                if key_a != key_b || !deep_equal(heap, a, b, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}

/// Returns true if one of the values equals `needle`.
pub fn is_in(heap: &Heap, values: &[Value], needle: &Value) -> Result<bool, String> {
    for value in values {
        if deep_equal(heap, needle, value, 0)? {
            return Ok(true);
        }
    }
    Ok(false)
}
