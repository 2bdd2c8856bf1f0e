//! A YAML body; and the same bytes as JSON, when they are valid JSON.

#![no_main]

use apiserver::Decoded;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// Maximum number of duplicate keys that are reported.
const DUPLICATES_MAX: usize = 64;
/// Maximum length of a key that needs no `?` before it (YAML 1.2.2 section 7.4.2).
const KEY_MAX: usize = 1024;

/// Returns true if the values are equal, except for the notation of numbers and the last bit of a
/// fraction.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap_or_default(), other.as_f64().unwrap_or(1.0));
            (one - other).abs() <= one.abs() * 1e-15
        }
        (Value::Array(ones), Value::Array(others)) => {
            ones.len() == others.len() && ones.iter().zip(others).all(|(a, b)| same(a, b))
        }
        (Value::Object(ones), Value::Object(others)) => {
            let has = |(name, one)| others.get(name).is_some_and(|other| same(one, other));
            ones.len() == others.len() && ones.iter().all(has)
        }
        _ => one == other,
    }
}

/// Returns true if a key may be too long for YAML without a `?`.
fn has_long_key(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_long_key),
        Value::Object(map) => {
            map.iter().any(|(key, value)| key.len() > KEY_MAX / 6 || has_long_key(value))
        }
        _ => false,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (json, yaml) = (Decoded::json(bytes), Decoded::yaml(text));
    if let (Ok(json), Ok(yaml)) = (&json, &yaml) {
        assert!(same(&json.value, &yaml.value), "{} is not {}", json.value, yaml.value);
    }
    let Ok(yaml) = yaml else { return };
    assert!(yaml.duplicates.len() <= DUPLICATES_MAX);
    let written = yaml.value.to_string();
    let again = Decoded::json(written.as_bytes()).expect("JSON that was written");
    assert!(same(&again.value, &yaml.value), "{written}");
    if !has_long_key(&yaml.value) {
        let again = Decoded::yaml(&written).expect("JSON is YAML");
        assert!(same(&again.value, &yaml.value), "{written}");
    }
});
