//! What clients may and may not say in `metadata`, and its limits.

use serde_json::{Map, Value, json};

use super::names;
use super::object::{finalizers, is_deleting, meta, metadata_mut};
use crate::definition::{NameRule, ResourceDefinition};
use crate::field_error::FieldError;
use crate::status_error::StatusError;

/// All annotations of one object together, keys and values, in bytes (Kubernetes' limit).
pub const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;
/// Finalizers and owners one object may list.
pub const MAX_LISTED: usize = 64;

/// Fields the engine writes; what a client says there is replaced by the stored value.
const OURS: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
];

/// Fields that are not kept: `selfLink` is history, `managedFields` comes with server-side apply.
const DROPPED: [&str; 2] = ["selfLink", "managedFields"];

/// Checks `apiVersion` and `kind` against the path's and sets them where they are missing; checks
/// `metadata.namespace` against the path's and sets it. `name` is that of the path, on an update.
pub fn check_identity(
    definition: &ResourceDefinition,
    namespace: &str,
    name: Option<&str>,
    object: &mut Value,
) -> Result<(), StatusError> {
    if !object.is_object() || object.get("metadata").is_some_and(|meta| !meta.is_object()) {
        return Err(StatusError::bad_request("the object and its metadata must be JSON objects"));
    }
    for (field, expected) in
        [("apiVersion", definition.api_version()), ("kind", definition.kind.clone())]
    {
        match object.get(field).unwrap_or(&Value::Null) {
            Value::Null => {}
            Value::String(given) if *given == expected => {}
            given => {
                return Err(StatusError::bad_request(format!(
                    "the {field} in the data ({given}) does not match the expected {field} \
                     ({expected})"
                )));
            }
        }
        object[field] = json!(expected);
    }
    if !["", namespace].contains(&meta(object, "namespace")) {
        return Err(StatusError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if let Some(name) = name {
        let given = meta(object, "name");
        if !["", name].contains(&given) {
            return Err(StatusError::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        metadata_mut(object).insert("name".to_owned(), json!(name));
    }
    let metadata = metadata_mut(object);
    if namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    Ok(())
}

/// Takes away everything in the metadata that clients cannot set on a new object, and what is null:
/// clients write it for what they leave out.
pub fn clear(object: &mut Value) {
    let metadata = metadata_mut(object);
    for field in OURS.iter().chain(&DROPPED) {
        metadata.remove(*field);
    }
    metadata.retain(|_, value| !value.is_null());
}

/// Puts the stored values back into the fields that are the engine's.
pub fn carry_over(old: &Value, new: &mut Value) {
    clear(new);
    let metadata = metadata_mut(new);
    for field in OURS {
        if let Some(value) = old["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
}

/// Checks the name's syntax.
pub fn check_name(definition: &ResourceDefinition, name: &str) -> Option<FieldError> {
    let (fits, detail) = match definition.name_rule {
        NameRule::Subdomain => (
            names::subdomain(name),
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
        ),
        NameRule::Label => (
            names::label(name),
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
             '-', and must start and end with an alphanumeric character",
        ),
    };
    (!fits).then(|| FieldError::invalid("metadata.name", &json!(name), detail))
}

/// Checks labels, annotations, finalizers and owners.
pub fn check(old: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let metadata = &object["metadata"];
    let mut errors = Vec::new();
    each_text(metadata, "labels", &mut errors, |key, value, errors| {
        if !names::qualified(key) {
            errors.push(FieldError::invalid("metadata.labels", &json!(key), "no label key"));
        }
        if !names::label_value(value) {
            let field = format!("metadata.labels[{key}]");
            errors.push(FieldError::invalid(field, &json!(value), "no label value"));
        }
    });
    let mut total = 0_usize;
    each_text(metadata, "annotations", &mut errors, |key, value, errors| {
        total = total.saturating_add(key.len()).saturating_add(value.len());
        if !names::qualified(&key.to_ascii_lowercase()) {
            let detail = "no annotation key";
            errors.push(FieldError::invalid("metadata.annotations", &json!(key), detail));
        }
    });
    if total > MAX_ANNOTATIONS_BYTES {
        errors.push(FieldError::too_long("metadata.annotations", MAX_ANNOTATIONS_BYTES));
    }
    check_finalizers(old, object, &mut errors);
    check_owners(metadata, &mut errors);
    errors
}

fn each_text(
    metadata: &Value,
    field: &str,
    errors: &mut Vec<FieldError>,
    mut check: impl FnMut(&str, &str, &mut Vec<FieldError>),
) {
    let path = format!("metadata.{field}");
    match metadata.get(field).unwrap_or(&Value::Null) {
        Value::Null => {}
        Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(text) => check(key, text, errors),
                    None => errors.push(FieldError::invalid(
                        format!("{path}[{key}]"),
                        value,
                        "must be a string",
                    )),
                }
            }
        }
        other => errors.push(FieldError::invalid(path, other, "must be an object of strings")),
    }
}

fn check_finalizers(old: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    let field = "metadata.finalizers";
    let listed = object["metadata"].get("finalizers").unwrap_or(&Value::Null);
    match listed {
        Value::Null => {}
        Value::Array(items) if items.len() <= MAX_LISTED => {
            for item in items {
                if !item.as_str().is_some_and(names::qualified) {
                    errors.push(FieldError::invalid(field, item, "must be a qualified name"));
                }
            }
        }
        other => errors.push(FieldError::invalid(
            field,
            other,
            format!("must be an array of at most {MAX_LISTED} strings"),
        )),
    }
    let Some(old) = old.filter(|old| is_deleting(old)) else { return };
    if finalizers(object).any(|one| finalizers(old).all(|before| before != one)) {
        errors.push(FieldError::forbidden(
            field,
            "no new finalizers can be added if the object is being deleted",
        ));
    }
}

fn check_owners(metadata: &Value, errors: &mut Vec<FieldError>) {
    let field = "metadata.ownerReferences";
    let empty = Map::new();
    match metadata.get("ownerReferences").unwrap_or(&Value::Null) {
        Value::Null => {}
        Value::Array(items) if items.len() <= MAX_LISTED => {
            for (at, item) in items.iter().enumerate() {
                let owner = item.as_object().unwrap_or(&empty);
                for key in ["apiVersion", "kind", "name", "uid"] {
                    if owner.get(key).and_then(Value::as_str).is_none_or(str::is_empty) {
                        let field = format!("{field}[{at}].{key}");
                        errors.push(FieldError::required(field, "must not be empty"));
                    }
                }
            }
        }
        other => errors.push(FieldError::invalid(
            field,
            other,
            format!("must be an array of at most {MAX_LISTED} owners"),
        )),
    }
}
