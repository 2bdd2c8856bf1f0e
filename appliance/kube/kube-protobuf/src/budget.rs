//! Limits on the number and depth of JSON values that are made from one body.

use serde_json::Value;

use crate::{Error, MAX_DEPTH, MAX_JSON_DEPTH, MAX_VALUES};

/// Budget: number of values that may still be made from a body.
pub(crate) struct Budget {
    values: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { values: MAX_VALUES }
    }

    /// Subtracts `count` values from the budget.
    pub(crate) fn take(&mut self, count: usize) -> Result<(), Error> {
        let left = self.values.checked_sub(count);
        self.values = left.ok_or(Error::TooMuch { what: "values", limit: MAX_VALUES })?;
        Ok(())
    }

    /// Parses raw JSON inside a message at the depth `depth`; null if empty.
    pub(crate) fn json(&mut self, bytes: &[u8], depth: usize) -> Result<Value, Error> {
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|_| Error::Malformed("raw bytes within it are not JSON"))?;
        let (values, levels) = measure(&value);
        self.take(values)?;
        // A message is one object level; a list or map around it is another.
        if levels + 2 * depth > MAX_JSON_DEPTH {
            return Err(Error::TooMuch { what: "levels of JSON", limit: MAX_JSON_DEPTH });
        }
        Ok(value)
    }
}

/// Returns the number of values and the depth of `value`, which serde_json limits to 128 levels.
fn measure(value: &Value) -> (usize, usize) {
    let parts: Vec<(usize, usize)> = match value {
        Value::Array(items) => items.iter().map(measure).collect(),
        Value::Object(map) => map.values().map(measure).collect(),
        _ => return (1, 1),
    };
    let values = parts.iter().map(|part| part.0).sum::<usize>();
    (values + 1, parts.iter().map(|part| part.1).max().unwrap_or_default() + 1)
}

/// Returns `depth` plus one; an error beyond [`MAX_DEPTH`].
pub(crate) fn deeper(depth: usize) -> Result<usize, Error> {
    if depth < MAX_DEPTH {
        return Ok(depth + 1);
    }
    Err(Error::TooMuch { what: "levels of messages", limit: MAX_DEPTH })
}
