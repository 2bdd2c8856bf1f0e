//! Conversion of any value to a number (`spf13/cast`): a value that is not a number becomes zero.

use crate::number::{float_from_text, int_from_text};
use crate::value::Value;

/// Converts a value as `cast.ToInt64` does.
pub fn int(value: &Value) -> i64 {
    match value {
        Value::Int(number) | Value::Int64(number) => *number,
        Value::Byte(byte) => i64::from(*byte),
        Value::Word(number) => number.cast_signed(),
        Value::Float(number) => truncated(*number),
        Value::Text(text) => int_from_text(without_zero_decimals(text)).unwrap_or(0),
        Value::Bool(is) => i64::from(*is),
        Value::Nil | Value::Hollow | Value::List(_) | Value::Map(_) | Value::Version(_) => 0,
    }
}

/// Converts a value as `cast.ToFloat64` does.
pub fn float(value: &Value) -> f64 {
    match value {
        Value::Float(number) => *number,
        Value::Word(number) => *number as f64,
        Value::Text(text) => float_from_text(text).unwrap_or(0.0),
        other => int(other) as f64,
    }
}

/// Converts a float to an integer. A value out of range becomes the smallest integer, as in Go on
/// amd64.
pub fn truncated(number: f64) -> i64 {
    let fits = (-(2f64.powi(63))..2f64.powi(63)).contains(&number);
    if fits { number as i64 } else { i64::MIN }
}

/// Removes zero decimals: `12.00` becomes `12`.
fn without_zero_decimals(text: &str) -> &str {
    match text.rfind('.') {
        Some(at) if text.len() > at + 1 && text[at + 1..].bytes().all(|byte| byte == b'0') => {
            &text[..at]
        }
        _ => text,
    }
}
