//! Limits of numbers, with Go's conversions: an integer is compared with the limit's integer part
//! (kube-openapi `validate/values.go`, go-openapi swag `convert.go`).

use serde_json::{Number, Value};

use crate::fault::{Fault, Outcome};
use crate::node::Node;

/// Maximum integer up to which a float64 represents every integer.
const MAX_JSON_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Maximum relative difference between a float and an integer that count as equal.
const EPSILON: f64 = 1e-9;

/// Converts floats with integer values to integers, as Go's encoder does: `2.0` is stored as `2`.
pub fn canonical_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_i64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.trunc() == float && float.abs() < MAX_JSON_INTEGER {
                *value = Value::from(truncate(float));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(canonical_numbers),
        Value::Object(map) => map.values_mut().for_each(canonical_numbers),
        _ => {}
    }
}

/// Returns true if a float counts as an integer in JSON.
pub(crate) fn is_json_integer(number: f64) -> bool {
    if !number.is_finite() || number.abs() > MAX_JSON_INTEGER {
        return false;
    }
    let truncated = number.trunc();
    if number == truncated {
        return true;
    }
    // Go truncates through an unsigned integer, so values below one have no relative distance.
    if number < 1.0 {
        return false;
    }
    (number - truncated).abs() / (number.abs() + truncated.abs()) < EPSILON
}

/// Returns true if `value`, converted to the number type of `one`, equals `one`.
pub(crate) fn same_converted(one: &Number, value: &Number) -> bool {
    match (one.as_i64(), value.as_i64()) {
        (Some(one), Some(value)) => one == value,
        (Some(one), None) => value.as_f64().is_some_and(|value| truncate(value) == one),
        _ => one.as_f64() == value.as_f64(),
    }
}

/// Converts a float64 to an int64 as Go does. Saturates where Go's result is undefined.
#[expect(clippy::cast_possible_truncation, reason = "the conversion is the point")]
fn truncate(number: f64) -> i64 {
    number as i64
}

pub(crate) fn check(node: &Node, path: &str, number: &Number) -> Outcome {
    let mut outcome = Outcome::default();
    let limits = &node.limits;
    let value = Value::Number(number.clone());
    if let Some(factor) = limits.multiple_of
        && let Some(fault) = multiple_of(path, &value, number, factor)
    {
        outcome.add(fault);
    }
    let mut bound = |limit: Option<f64>, exclusive: bool, is_minimum: bool| {
        let Some(limit) = limit else { return };
        let outside = match number.as_i64() {
            Some(integer) => is_outside(integer, truncate(limit), exclusive, is_minimum),
            None => {
                let float = number.as_f64().unwrap_or_default();
                is_outside(float, limit, exclusive, is_minimum)
            }
        };
        if outside {
            let relation = match (is_minimum, exclusive) {
                (true, true) => "greater than",
                (true, false) => "greater than or equal to",
                (false, true) => "less than",
                (false, false) => "less than or equal to",
            };
            let limit = match number.is_i64() {
                true => truncate(limit).to_string(),
                false => go_text::float(limit),
            };
            outcome.add(Fault::invalid(path, &value, &format!("should be {relation} {limit}")));
        }
    };
    bound(limits.minimum, limits.exclusive_minimum, true);
    bound(limits.maximum, limits.exclusive_maximum, false);
    outcome.held += 1;
    outcome
}

fn is_outside<T: PartialOrd>(value: T, limit: T, exclusive: bool, is_minimum: bool) -> bool {
    match (is_minimum, exclusive) {
        (true, true) => value <= limit,
        (true, false) => value < limit,
        (false, true) => value >= limit,
        (false, false) => value > limit,
    }
}

fn multiple_of(path: &str, value: &Value, number: &Number, factor: f64) -> Option<Fault> {
    let (factor_value, shown, divides) = match number.as_i64() {
        Some(integer) => {
            let factor = truncate(factor);
            let divides = factor > 0 && integer % factor == 0;
            (Value::from(factor), factor.to_string(), divides)
        }
        None => {
            let number = number.as_f64().unwrap_or_default();
            let quotient = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
            (Value::from(factor), go_text::float(factor), is_json_integer(quotient))
        }
    };
    if factor_value.as_f64().is_some_and(|factor| factor <= 0.0) {
        let message = format!("factor MultipleOf declared for {path} must be positive: {shown}");
        return Some(Fault::invalid_saying(path, &factor_value, message));
    }
    (!divides).then(|| Fault::invalid(path, value, &format!("should be a multiple of {shown}")))
}
