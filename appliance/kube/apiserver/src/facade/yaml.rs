//! Answers in YAML, made of their JSON.

use serde_json::Value;

/// The same value in YAML; `None` for what is no JSON.
pub fn write(json: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(json).ok()?;
    serde_saphyr::to_string(&value).ok()
}

#[cfg(test)]
mod tests;
