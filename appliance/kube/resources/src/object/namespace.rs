//! Special rules of Namespace objects: finalizers in `spec`, which only `/finalize` can change.

use serde_json::{Value, json};

use super::metadata_mut;

/// Finalizer in `spec` that stays until the namespace is empty.
pub(crate) const KUBERNETES: &str = "kubernetes";

/// Adds the finalizer `kubernetes` to a new namespace, so that its objects are deleted before it.
pub(crate) fn begin(object: &mut Value) {
    // The type check refuses a `spec` of another type.
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

/// Sets the label `kubernetes.io/metadata.name`, by which selectors match the namespace's name.
pub(crate) fn label(object: &mut Value) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let labels = metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut()
        && !name.is_empty()
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
}

/// Replaces `spec.finalizers` by those of `source`.
pub(crate) fn take_finalizers(object: &mut Value, source: &Value) {
    let finalizers = source["spec"]["finalizers"].as_array().filter(|list| !list.is_empty());
    let takes_them = object["spec"].is_object() || object["spec"].is_null();
    if let Some(finalizers) = finalizers.filter(|_| takes_them) {
        object["spec"]["finalizers"] = json!(finalizers);
    } else if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("finalizers");
    }
}
