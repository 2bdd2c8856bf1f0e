//! Rules and limits for the `metadata` that clients send.

use serde_json::{Map, Value, json};

use super::ownership;
use crate::definition::{GroupKind, NameRule, ResourceDefinition};
use crate::engine::{FOREGROUND, ORPHAN};
use crate::object::{MAX_PATH_BYTES, finalizers, is_deleting, meta, metadata_mut, names};
use crate::status_error::StatusError;
use schema::FieldError;
use stdx::json::has_paths_within;

/// Maximum total annotations of one object, keys and values, in bytes (Kubernetes' limit).
pub const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;
/// Maximum finalizers and maximum owner references of one object.
pub const MAX_LISTED: usize = 64;

/// Metadata fields that only the engine writes; a client's value is replaced by the stored value.
const OURS: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
];

/// Deprecated metadata fields, which are not stored.
const DROPPED: [&str; 1] = ["selfLink"];

/// Metadata fields whose empty value means the same as an omitted field.
const OMITTED_EMPTY: [&str; 5] =
    ["annotations", "finalizers", "generateName", "labels", "ownerReferences"];

/// Checks that object and metadata are JSON objects, and the limits on depth and path lengths.
pub fn check_shape(object: &Value) -> Result<(), StatusError> {
    let wrong = |meta: &Value| !meta.is_object() && !meta.is_null();
    if !object.is_object() || object.get("metadata").is_some_and(wrong) {
        return Err(StatusError::bad_request("the object and its metadata must be JSON objects"));
    }
    // Field names in managedFields come from the object; another parser checks these names.
    let fields = object.as_object().into_iter().flatten();
    let (metadata, others): (Vec<_>, Vec<_>) = fields.partition(|(name, _)| *name == "metadata");
    let below = metadata.into_iter().filter_map(|(_, value)| value.as_object()).flatten();
    let mut all = below.filter(|(name, _)| *name != "managedFields").chain(others);
    let fits = |(name, value): (&String, &Value)| {
        let left = MAX_PATH_BYTES.checked_sub(name.len());
        left.is_some_and(|left| has_paths_within(value, left))
    };
    if !all.all(fits) {
        let why = format!("the path of a field is longer than {MAX_PATH_BYTES} bytes");
        return Err(StatusError::bad_request(why));
    }
    Ok(())
}

/// Checks `apiVersion` and `kind` against the path, and sets them if missing. Checks
/// `metadata.namespace` against the path, and sets it. `name` is the name in the path of an update.
pub fn check_identity(
    definition: &ResourceDefinition,
    namespace: &str,
    name: Option<&str>,
    object: &mut Value,
) -> Result<(), StatusError> {
    check_shape(object)?;
    for (field, expected) in
        [("apiVersion", definition.api_version()), ("kind", definition.kind.clone())]
    {
        match object.get(field).unwrap_or(&Value::Null) {
            Value::Null => {}
            Value::String(given) if *given == expected => {}
            given => return Err(wrong_type(definition, object, field, given, &expected)),
        }
        object[field] = json!(expected);
    }
    // A namespace in a cluster-scoped object is ignored below.
    if !namespace.is_empty() && !["", namespace].contains(&meta(object, "namespace")) {
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

/// Returns upstream's error for another `apiVersion` or `kind` than the path's (apiserver
/// `endpoints/handlers/create.go`, apiextensions `registry/customresource/validator.go`).
fn wrong_type(
    definition: &ResourceDefinition,
    object: &Value,
    field: &str,
    given: &Value,
    expected: &str,
) -> StatusError {
    let text = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
    match field {
        "apiVersion" => StatusError::bad_request(format!(
            "the API version in the data ({text}) does not match the expected API version \
             ({expected})"
        )),
        _ if !given.is_string() => StatusError::bad_request(format!(
            "json: cannot unmarshal {} into Go struct field .{field} of type string",
            go_text::json_kind(given)
        )),
        _ if definition.native => StatusError::bad_request(format!(
            "the object provided is unrecognized (must be of type {expected})"
        )),
        _ => {
            let error = FieldError::invalid(field, given, format!("must be {expected}"));
            let kind = GroupKind { kind: &text, ..definition.group_kind() };
            StatusError::invalid_kind(kind, meta(object, "name"), &[error])
        }
    }
}

/// Removes metadata that clients cannot set, and null or empty values, which clients write for
/// omitted fields.
pub fn clear(object: &mut Value) {
    let metadata = metadata_mut(object);
    for field in OURS.iter().chain(&DROPPED) {
        metadata.remove(*field);
    }
    metadata.retain(|field, value| match value {
        Value::Null => false,
        Value::Object(map) => !(map.is_empty() && OMITTED_EMPTY.contains(&field.as_str())),
        Value::Array(items) => !(items.is_empty() && OMITTED_EMPTY.contains(&field.as_str())),
        Value::String(text) => !(text.is_empty() && OMITTED_EMPTY.contains(&field.as_str())),
        _ => true,
    });
}

/// Replaces the client's values of fields that only the engine writes by the values in `old`.
pub fn carry_over(old: &Value, new: &mut Value) {
    clear(new);
    let metadata = metadata_mut(new);
    for field in OURS {
        if let Some(value) = old["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
}

/// Checks the syntax of a name. A `generateName`, unlike a name, may end with a dash.
pub fn name_errors(definition: &ResourceDefinition, field: &str, name: &str) -> Vec<FieldError> {
    let base = if field == GENERATE_NAME { name.trim_end_matches('-') } else { name };
    // The appended suffix makes a trailing dash valid.
    let whole = if base.len() < name.len() { format!("{base}-a") } else { name.to_owned() };
    let mistakes = match definition.name_rule {
        NameRule::Subdomain => schema::names::subdomain_mistakes(&whole),
        NameRule::Label if whole.contains('.') && names::subdomain(&whole) => {
            vec!["must not contain dots".to_owned()]
        }
        NameRule::Label => schema::names::dns_label_mistakes(&whole),
        NameRule::PathSegment => schema::names::path_segment_mistakes(&whole, true),
    };
    let make = |mistake| FieldError::invalid(field, &json!(name), mistake);
    mistakes.into_iter().map(make).collect()
}

/// Path of the field `generateName`, the beginning of a generated name.
pub const GENERATE_NAME: &str = "metadata.generateName";

/// Checks that the client's object `new` does not change immutable metadata; omitted fields pass.
pub fn check_fixed(old: &Value, new: &Value) -> Vec<FieldError> {
    let deleting = is_deleting(old);
    let fixed =
        [("uid", false), ("deletionTimestamp", deleting), ("deletionGracePeriodSeconds", deleting)];
    let mut errors = Vec::new();
    for (field, silently) in fixed {
        let given = new["metadata"].get(field).unwrap_or(&Value::Null);
        let kept = old["metadata"].get(field).unwrap_or(&Value::Null);
        if !(silently || given.is_null() || *given == json!("") || given == kept) {
            let place = format!("metadata.{field}");
            errors.push(FieldError::invalid(place, given, "field is immutable"));
        }
    }
    errors
}

/// Checks labels, annotations, finalizers and owner references, with the messages of
/// `k8s.io/apimachinery` `pkg/api/validation/objectmeta.go`.
pub fn check(
    definition: &ResourceDefinition,
    old: Option<&Value>,
    object: &Value,
) -> Vec<FieldError> {
    let metadata = &object["metadata"];
    let mut errors = Vec::new();
    each_text(metadata, "labels", &mut errors, |key, value, errors| {
        for mistake in schema::names::qualified_mistakes(key) {
            errors.push(FieldError::invalid("metadata.labels", &json!(key), mistake));
        }
        for mistake in schema::names::label_value_mistakes(value) {
            errors.push(FieldError::invalid("metadata.labels", &json!(value), mistake));
        }
    });
    let mut total = 0_usize;
    each_text(metadata, "annotations", &mut errors, |key, value, errors| {
        total = total.saturating_add(key.len()).saturating_add(value.len());
        for mistake in schema::names::qualified_mistakes(&key.to_lowercase()) {
            errors.push(FieldError::invalid("metadata.annotations", &json!(key), mistake));
        }
    });
    if total > MAX_ANNOTATIONS_BYTES {
        errors.push(FieldError::too_long("metadata.annotations", MAX_ANNOTATIONS_BYTES));
    }
    check_finalizers(old, object, &mut errors);
    if definition.native {
        check_native_finalizers(old, object, &mut errors);
    }
    check_owners(metadata, &mut errors);
    ownership::check(object, &mut errors);
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
                let Some(name) = item.as_str() else {
                    errors.push(FieldError::invalid(field, item, "must be a string"));
                    continue;
                };
                for mistake in schema::names::qualified_mistakes(name) {
                    errors.push(FieldError::invalid(field, item, mistake));
                }
            }
            let has = |name: &str| items.iter().any(|item| item == name);
            if has(FOREGROUND) && has(ORPHAN) {
                let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
                errors.push(FieldError::invalid(field, listed, detail));
            }
        }
        other => errors.push(FieldError::invalid(
            field,
            other,
            format!("must be an array of at most {MAX_LISTED} strings"),
        )),
    }
    let Some(old) = old.filter(|old| is_deleting(old)) else { return };
    let is_new = |one: &&str| finalizers(old).all(|before| before != *one);
    let added: Vec<String> =
        finalizers(object).filter(is_new).map(|one| format!("{one:?}")).collect();
    if !added.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers \
             []string{{{}}}",
            added.join(", ")
        );
        errors.push(FieldError::forbidden(field, detail));
    }
}

/// Checks the finalizers of Kubernetes' own kinds: a finalizer without a domain must be defined by
/// Kubernetes (`pkg/apis/core/validation`, `validateKubeFinalizerName`). Finalizers of `old` and of
/// CustomResourceDefinitions are not checked.
fn check_native_finalizers(old: Option<&Value>, object: &Value, errors: &mut Vec<FieldError>) {
    if object["kind"] == "CustomResourceDefinition" {
        return;
    }
    for (index, name) in finalizers(object).enumerate() {
        let is_known = name.contains('/') || ["kubernetes", FOREGROUND, ORPHAN].contains(&name);
        if !is_known && !old.is_some_and(|old| finalizers(old).any(|before| before == name)) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            let field = format!("metadata.finalizers[{index}]");
            errors.push(FieldError::invalid(field, &json!(name), detail));
        }
    }
}

fn check_owners(metadata: &Value, errors: &mut Vec<FieldError>) {
    let field = "metadata.ownerReferences";
    let empty = Map::new();
    let owners = match metadata.get("ownerReferences").unwrap_or(&Value::Null) {
        Value::Null => return,
        Value::Array(owners) if owners.len() <= MAX_LISTED => owners,
        other => {
            let detail = format!("must be an array of at most {MAX_LISTED} owners");
            errors.push(FieldError::invalid(field, other, detail));
            return;
        }
    };
    let mut controller = "";
    for owner in owners {
        let owner = owner.as_object().unwrap_or(&empty);
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
        for (key, detail) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(key).is_empty() {
                let field = format!("{field}.{key}");
                errors.push(FieldError::invalid(field, &json!(""), detail));
            }
        }
        if (text("apiVersion"), text("kind")) == ("v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(field, &json!(owner), detail));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            if !controller.is_empty() {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {controller} and {}",
                    text("name")
                );
                errors.push(FieldError::invalid(field, &json!(owners), detail));
            }
            controller = text("name");
        }
    }
}
