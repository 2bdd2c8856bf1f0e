//! Comparisons such as `eq` and `lt`: only values of the same basic kind can be compared.

use std::rc::Rc;

use crate::value::Value;

#[derive(PartialEq, Eq, Clone, Copy)]
enum Kind {
    Bool,
    Int,
    Float,
    Text,
    Other,
}

fn kind(value: &Value) -> Kind {
    match value {
        Value::Bool(_) => Kind::Bool,
        // Signed and unsigned integers can be compared.
        Value::Int(_) | Value::Int64(_) | Value::Byte(_) | Value::Word(_) => Kind::Int,
        Value::Float(_) => Kind::Float,
        Value::Text(_) => Kind::Text,
        Value::Nil | Value::Hollow | Value::List(_) | Value::Map(_) | Value::Version(_) => {
            Kind::Other
        }
    }
}

fn int(value: &Value) -> i128 {
    match value {
        Value::Int(number) | Value::Int64(number) => i128::from(*number),
        Value::Byte(byte) => i128::from(*byte),
        Value::Word(number) => i128::from(*number),
        _ => 0,
    }
}

fn incompatible(a: &Value, b: &Value) -> String {
    format!("incompatible types for comparison: {} and {}", a.type_name(), b.type_name())
}

/// Returns true if `first` equals one of the others. Stops at the first equal value.
pub fn equal(first: &Value, others: &[Value]) -> Result<bool, String> {
    if others.is_empty() {
        return Err("missing argument for comparison".to_owned());
    }
    for other in others {
        if equal_to(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal_to(a: &Value, b: &Value) -> Result<bool, String> {
    if kind(a) != kind(b) {
        if a.is_nil() || b.is_nil() {
            return Ok(false);
        }
        return Err(incompatible(a, b));
    }
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Float(a), Value::Float(b)) => Ok(a == b),
        (Value::Text(a), Value::Text(b)) => Ok(a == b),
        (a, b) if kind(a) == Kind::Other && !a.is_nil() && !b.is_nil() && !is_like(a, b) => {
            Err(format!("non-comparable types {}, {}", a.type_name(), b.type_name()))
        }
        // Pointers are equal where they point to the same one, values where all of them is.
        (Value::Version(a), Value::Version(b)) if a.is_pointer => {
            Ok(Rc::ptr_eq(&a.version, &b.version))
        }
        (Value::Version(a), Value::Version(b)) => Ok(a.version == b.version),
        _ if kind(a) == Kind::Other => match (is_nil(a), is_nil(b)) {
            (false, false) => Err(format!("non-comparable type {}", b.type_name())),
            (a, b) => Ok(a == b),
        },
        _ => Ok(int(a) == int(b)),
    }
}

/// Returns true if both values have the same kind in Go's package `reflect`.
fn is_like(a: &Value, b: &Value) -> bool {
    a.kind_name() == b.kind_name()
}

/// Returns true for nil, a nil map and a nil slice.
fn is_nil(value: &Value) -> bool {
    match value {
        Value::List(list) => list.nil,
        Value::Map(map) => map.nil,
        value => value.is_nil(),
    }
}

/// Returns true if `a` is less than `b`.
pub fn less(a: &Value, b: &Value) -> Result<bool, String> {
    let (kind_a, kind_b) = (kind(a), kind(b));
    if kind_a == Kind::Other || kind_b == Kind::Other {
        return Err("invalid type for comparison".to_owned());
    }
    match (a, b) {
        _ if kind_a != kind_b => Err(incompatible(a, b)),
        (Value::Bool(_), _) => Err("invalid type for comparison".to_owned()),
        (Value::Float(a), Value::Float(b)) => Ok(a < b),
        (Value::Text(a), Value::Text(b)) => Ok(a < b),
        (a, b) => Ok(int(a) < int(b)),
    }
}
