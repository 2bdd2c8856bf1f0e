//! What is particular about a namespace as an object: finalizers of its own in `spec`, changed only
//! through `/finalize`, and a phase that follows from its deletion.

use serde_json::{Value, json};

use super::metadata_mut;

/// The finalizer that stands for what a namespace holds.
pub(crate) const KUBERNETES: &str = "kubernetes";

/// A new namespace: held by what will be in it.
pub(crate) fn begin(object: &mut Value) {
    // What is of another type is refused for it.
    let spec = &object["spec"];
    let takes_them = spec.is_object() || spec.is_null();
    let mut finalizers = match &spec["finalizers"] {
        Value::Array(listed) if takes_them => listed.clone(),
        Value::Null if takes_them => Vec::new(),
        _ => return,
    };
    if !finalizers.iter().any(|one| one == KUBERNETES) {
        finalizers.push(json!(KUBERNETES));
    }
    object["spec"]["finalizers"] = json!(finalizers);
}

/// A namespace carries its own name as a label, by which selectors choose it.
pub(crate) fn label(object: &mut Value) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let labels = metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut()
        && !name.is_empty()
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
}

/// Takes the namespace's own finalizers from `source`.
pub(crate) fn take_finalizers(object: &mut Value, source: &Value) {
    let finalizers = source["spec"]["finalizers"].as_array().filter(|list| !list.is_empty());
    let takes_them = object["spec"].is_object() || object["spec"].is_null();
    if let Some(finalizers) = finalizers.filter(|_| takes_them) {
        object["spec"]["finalizers"] = json!(finalizers);
    } else if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("finalizers");
    }
}
