//! Annotation in which client-side apply stores its configuration. Server-side apply reads and
//! updates it, so that clients can change between both kinds of apply (apimachinery,
//! `util/managedfields/internal`: `lastapplied*.go`).

use serde_json::{Map, Value};

use go_text::json_iterator::push_json;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Size limit of all annotations of one object, keys and values, in bytes (Kubernetes' limit).
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// Returns the configuration in the annotation; `None` if it is missing or invalid.
pub(crate) fn read(object: &Value) -> Option<Value> {
    let text = annotations(object)?[ANNOTATION].as_str()?;
    serde_json::from_str(text).ok().filter(Value::is_object)
}

/// Returns the annotations of an object; `None` if an annotation is not a string, as in upstream.
fn annotations(object: &Value) -> Option<&Value> {
    let annotations = &object["metadata"]["annotations"];
    let texts = annotations.as_object()?.values().all(|value| value.is_string() || value.is_null());
    texts.then_some(annotations)
}

/// Writes `config` into the annotation, if the object has the annotation. Removes the annotation if
/// all annotations together would exceed 256 KiB.
pub(crate) fn refresh(object: &mut Value, config: &Value) {
    let Some(annotations) = annotations(object) else { return };
    if annotations[ANNOTATION].as_str().is_none_or(str::is_empty) {
        return;
    }
    let text = encode(config);
    let others = annotations.as_object().into_iter().flatten();
    let others: usize = others
        .filter(|(key, _)| *key != ANNOTATION)
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    let total = others.saturating_add(ANNOTATION.len()).saturating_add(text.len());
    let annotations = object["metadata"]["annotations"].as_object_mut();
    let Some(annotations) = annotations else { return };
    coerce(annotations);
    if total > MAX_ANNOTATIONS_BYTES {
        annotations.remove(ANNOTATION);
    } else {
        annotations.insert(ANNOTATION.to_owned(), Value::String(text));
    }
}

/// Formats the configuration as a line of JSON, without the annotation itself.
fn encode(config: &Value) -> String {
    let mut config = config.clone();
    if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) {
        match metadata.get_mut("annotations") {
            Some(Value::Object(annotations)) => {
                annotations.remove(ANNOTATION);
                coerce(annotations);
            }
            _ => drop(metadata.remove("annotations")),
        }
    }
    let mut text = String::new();
    push_json(&mut text, &config);
    text.push('\n');
    text
}

/// Replaces null by an empty string, because annotations are strings.
fn coerce(annotations: &mut Map<String, Value>) {
    for value in annotations.values_mut().filter(|value| value.is_null()) {
        *value = Value::from("");
    }
}
