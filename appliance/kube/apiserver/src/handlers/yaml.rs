//! Conversion of responses from JSON to YAML.

use serde_json::Value;

/// Converts JSON to YAML; `None` for invalid JSON.
pub fn write(json: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(json).ok()?;
    serde_saphyr::to_string(&value).ok()
}

#[cfg(test)]
mod tests;
