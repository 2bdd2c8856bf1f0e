//! Merges a pushed file into an existing object: a three-way merge, as in `kubectl apply`.
//!
//! The last pushed file is stored in kubectl's annotation, so that both commands can be mixed. A
//! field that changed in the file since the last push is written. A field that the file no longer
//! has is removed. All other fields stay, because other clients may have written them.

use serde_json::{Map, Value, json};

/// Annotation of kubectl with the object as it was last applied.
const LAST: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Maximum size of the annotation in bytes; all annotations together may have 256 KiB.
const LAST_BYTES: usize = 200 << 10;
/// JSON pointers of the fields that identify a list element.
const IDENTITIES: [&str; 4] = ["/name", "/dhcp/mac", "/id", "/device"];

/// Returns the live object with the changes of `file`, which has `data` and no `stringData`.
pub fn applied(live: &Value, file: &Value) -> Value {
    let last = last(live);
    let mut wanted = live.clone();
    let (none, empty) = (Map::new(), json!({}));
    let keys = [file, &last].map(|it| it.as_object().unwrap_or(&none));
    for key in keys.into_iter().flat_map(Map::keys) {
        match key.as_str() {
            "apiVersion" | "kind" | "status" | "metadata" => {}
            key => change(&mut wanted, key, last.get(key), file.get(key)),
        }
    }
    for part in ["labels", "annotations"] {
        let [last, file] = [&last, file].map(|it| it["metadata"].get(part));
        if last.is_some() || file.is_some() {
            let file = file.unwrap_or(&empty);
            change(&mut wanted["metadata"], part, last, Some(file));
        }
    }
    let known = live.pointer("/metadata/annotations").and_then(|all| all.get(LAST));
    let text = text(file);
    if text.as_deref() != known.and_then(Value::as_str) {
        remember(&mut wanted, text);
    }
    wanted
}

/// Returns a new object from `file`, with the last-applied annotation.
pub fn created(file: &Value) -> Value {
    let mut object = file.clone();
    remember(&mut object, text(file));
    object
}

fn remember(object: &mut Value, text: Option<String>) {
    match text {
        Some(text) => object["metadata"]["annotations"][LAST] = json!(text),
        None => {
            let annotations = object.pointer_mut("/metadata/annotations");
            annotations.and_then(Value::as_object_mut).map(|all| all.remove(LAST));
        }
    }
}

/// Returns the text for the annotation; `None` if it is too long. A Secret keeps only the names of
/// its data, which are needed to remove fields.
fn text(file: &Value) -> Option<String> {
    let mut kept = file.clone();
    if file["kind"] == "Secret"
        && let Some(data) = kept["data"].as_object_mut()
    {
        data.values_mut().for_each(|value| *value = json!(""));
    }
    let text = format!("{kept}\n");
    (text.len() <= LAST_BYTES).then_some(text)
}

fn last(live: &Value) -> Value {
    let text = live["metadata"]["annotations"][LAST].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

fn change(object: &mut Value, key: &str, last: Option<&Value>, file: Option<&Value>) {
    let wanted = match file {
        Some(file) => merged(last, file, object.get(key)),
        None => None,
    };
    match (wanted, object.as_object_mut()) {
        (Some(wanted), _) => object[key] = wanted,
        (None, Some(object)) => drop(object.remove(key)),
        (None, None) => {}
    }
}

/// Returns the live value with the file's changes since the last push; `None`: no such value.
fn merged(last: Option<&Value>, file: &Value, live: Option<&Value>) -> Option<Value> {
    if last == Some(file) {
        return live.cloned();
    }
    match (file, live) {
        (Value::Object(file), Some(live @ Value::Object(_))) => {
            let mut wanted = live.clone();
            let none = Map::new();
            let before = last.and_then(Value::as_object).unwrap_or(&none);
            for key in file.keys().chain(before.keys().filter(|key| !file.contains_key(*key))) {
                change(&mut wanted, key, before.get(key), file.get(key));
            }
            Some(wanted)
        }
        (Value::Array(file), Some(Value::Array(live))) => Some(elements(last, file, live)),
        _ => Some(file.clone()),
    }
}

/// Merges list elements with the same index and identity; takes all others from the file.
fn elements(last: Option<&Value>, file: &[Value], live: &[Value]) -> Value {
    let last = last.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let element = |(at, file): (usize, &Value)| {
        let (last, live) = (last.get(at), live.get(at));
        let is_same = |other: &Value| other.is_object() && is_same_element(file, other);
        match (last.is_none_or(is_same), live.is_some_and(is_same)) {
            (true, true) => merged(last, file, live).unwrap_or_else(|| file.clone()),
            _ => file.clone(),
        }
    };
    file.iter().enumerate().map(element).collect()
}

fn is_same_element(a: &Value, b: &Value) -> bool {
    let identity = IDENTITIES.iter().find_map(|path| match (a.pointer(path), b.pointer(path)) {
        (None, None) => None,
        (a, b) => Some(a == b),
    });
    identity.unwrap_or(false)
}

#[cfg(test)]
mod tests;
