//! The functions `toYaml` and `fromYaml`, which convert through JSON as upstream's library.

use crate::json::{self, Style};
use crate::value::{Heap, Value, may_make};

/// Returns a value as YAML.
pub fn write(heap: &Heap, value: &Value) -> Result<String, String> {
    let text = json::write(heap, value, Style { html: false, pretty: false })?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|_| "JSON cannot represent the value".to_owned())?;
    let text = kube_yaml::write(&value)?;
    may_make(text.len())?;
    Ok(text)
}

/// Parses a YAML text.
pub fn read(heap: &Heap, text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Err("empty YAML input".to_owned());
    }
    heap.step(text.len())?;
    let document = kube_yaml::read(text).map_err(|error| error.to_string())?;
    heap.json(&document.value, 0)
}
