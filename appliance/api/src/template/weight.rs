//! What a value costs. Steps alone bound nothing: a step that doubles a value is taken forty times
//! and fills the memory, a step that wraps it in a list is taken until the stack ends.

use serde_json::Value;

/// The largest value a function may make, in bytes.
pub const VALUE_BYTES_MAX: usize = 1 << 20;
/// The deepest one; JSON and YAML that are read go about as deep.
pub const VALUE_DEPTH_MAX: usize = 128;
/// One step pays for so many bytes.
pub const STEP_BYTES: usize = 1024;
/// What a value takes besides its text.
const NODE_BYTES: usize = 32;

/// Bytes in memory, roughly; `None` for a value that is nested too deeply.
pub fn weight(value: &Value) -> Option<usize> {
    weigh(value, VALUE_DEPTH_MAX)
}

fn weigh(value: &Value, deeper: usize) -> Option<usize> {
    let deeper = deeper.checked_sub(1)?;
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => {
            items.iter().try_fold(0, |sum, item| Some(sum + weigh(item, deeper)?))?
        }
        Value::Object(fields) => fields
            .iter()
            .try_fold(0, |sum, (key, item)| Some(sum + key.len() + weigh(item, deeper)?))?,
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    Some(NODE_BYTES + inside)
}

/// Whether a text of `bytes` may be made; functions whose result can be far larger than their
/// arguments ask before they make it.
///
/// # Errors
/// Says that it is too large.
pub fn may_make(bytes: usize) -> Result<(), String> {
    match bytes <= VALUE_BYTES_MAX {
        true => Ok(()),
        false => Err(format!("makes a value of more than {VALUE_BYTES_MAX} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_part_counts() {
        assert_eq!(weight(&Value::Null), Some(NODE_BYTES));
        assert_eq!(weight(&json!({ "ab": ["c", 1] })), Some(4 * NODE_BYTES + 3));
        let nested = |depth| (1..depth).fold(json!(1), |inner, _| json!([inner]));
        assert!(weight(&nested(VALUE_DEPTH_MAX)).is_some());
        assert!(weight(&nested(VALUE_DEPTH_MAX + 1)).is_none());
    }
}
