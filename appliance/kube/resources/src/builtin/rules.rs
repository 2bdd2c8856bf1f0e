//! Validation of the compiled-in kinds beyond their schemas: Kubernetes' rules for its own kinds,
//! and rules of this box for workflows, networks and rule sets. [`super::typed`] checks the Rust
//! types that controllers read.

use std::net::IpAddr;

use api::network::NetworkSpec;
use api::tinkerbell::{AUTO_DISCOVERED, RULES_MAX, RuleSetSpec, WorkflowSpec};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use event_pattern::Pattern;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use stdx::MacAddr;

use super::{typed, typed_secret};
use crate::definition::UniqueValue;
use crate::object::{bytes, namespace};
use schema::FieldError;

type Errors = Vec<FieldError>;

/// Maximum bytes of a Workflow's name. Names of its boot Jobs and Tasks add a prefix and a number,
/// and may have at most 253 bytes.
const MAX_WORKFLOW_NAME: usize = 200;

/// Kubernetes' message for an invalid key in a Secret or ConfigMap.
const KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
    '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
    '[-._a-zA-Z0-9]+')";

/// Maximum data of one Secret or ConfigMap, in bytes (Kubernetes' limit).
const MAX_SECRET_BYTES: usize = 1024 * 1024;

/// Accepts every object: the check of a kind without rules beyond its schema.
pub(super) fn nothing(_object: &Value, _old: Option<&Value>) -> Errors {
    Vec::new()
}

/// Returns the MAC and IP addresses of a Hardware, which no other Hardware may have.
/// Auto-discovered Hardware returns none, so that Hardware written by the owner takes precedence.
pub(super) fn hardware_values(object: &Value) -> Vec<UniqueValue> {
    if object["metadata"]["labels"][AUTO_DISCOVERED] == "true" {
        return Vec::new();
    }
    let mut values = Vec::new();
    let mut add = |what, value: Option<String>, field: String| {
        values.extend(value.map(|value| UniqueValue { what, value, field }));
    };
    let interfaces = object["spec"]["interfaces"].as_array();
    for (at, interface) in interfaces.into_iter().flatten().enumerate() {
        let dhcp = &interface["dhcp"];
        let mac = dhcp["mac"].as_str().and_then(|mac| mac.parse::<MacAddr>().ok());
        let mac = mac.filter(|mac| mac.0 != [0; 6]).map(|mac| mac.to_string());
        add("MAC address", mac, format!("spec.interfaces[{at}].dhcp.mac"));
        let address = dhcp["ip"]["address"].as_str().and_then(|it| it.parse::<IpAddr>().ok());
        let address = address.filter(|it| !it.is_unspecified()).map(|it| it.to_string());
        add("address", address, format!("spec.interfaces[{at}].dhcp.ip.address"));
    }
    values
}

/// Checks that a Network's addresses are valid and its ranges lie in the network. An unreadable
/// spec passes here and fails the type check.
pub(super) fn network(object: &Value, _old: Option<&Value>) -> Errors {
    let Ok(spec) = NetworkSpec::deserialize(&object["spec"]) else { return Vec::new() };
    let told = spec.plan().err().unwrap_or_default().into_iter().map(|problem| {
        let field = format!("spec.{}", problem.field);
        FieldError::invalid(field, &Value::from(problem.value), problem.why)
    });
    told.collect()
}

/// Checks that the rules of a WorkflowRuleSet are valid patterns, at most [`RULES_MAX`]. An invalid
/// rule that is already stored does not block an update.
pub(super) fn rule_set(object: &Value, old: Option<&Value>) -> Errors {
    let rules = |object: &Value| match RuleSetSpec::deserialize(&object["spec"]) {
        Ok(spec) => spec.rules,
        // The type check reports unreadable specs.
        Err(_) => Vec::new(),
    };
    let (rules, before) = (rules(object), old.map(rules).unwrap_or_default());
    let (count, most) = (rules.len(), RULES_MAX);
    if count > most.max(before.len()) {
        let detail = format!("must have at most {most} items: part the rule set");
        return vec![FieldError::invalid("spec.rules", &json!(count), detail)];
    }
    let fresh = rules.iter().enumerate().filter(|(_, rule)| !before.contains(rule));
    let wrong = fresh.filter_map(|(at, rule)| {
        let why = Pattern::parse(rule).err()?;
        let shown = typed::shown(&json!(rule));
        Some(FieldError::invalid(format!("spec.rules[{at}]"), &shown, why.to_string()))
    });
    wrong.take(typed::MAX_MISTAKES).collect()
}

/// Checks that a new Workflow's name is at most [`MAX_WORKFLOW_NAME`] bytes, and that an update
/// does not change the inputs of a started run. Upstream has neither check.
pub(super) fn workflow(object: &Value, old: Option<&Value>) -> Errors {
    let is_long = |name: &str| name.len() > MAX_WORKFLOW_NAME;
    match old {
        Some(old) => begun(old, object),
        None if object["metadata"]["name"].as_str().is_some_and(is_long) => {
            vec![FieldError::too_long("metadata.name", MAX_WORKFLOW_NAME)]
        }
        None => Vec::new(),
    }
}

/// Refuses changes of machine, template or boot mode after a run has started (its state is set):
/// the run would mix old and new inputs. An omitted field equals an empty field.
fn begun(old: &Value, new: &Value) -> Errors {
    if old["status"]["state"].as_str().is_none_or(str::is_empty) {
        return Vec::new();
    }
    let spec = |object: &Value| match &object["spec"] {
        Value::Null => Ok(WorkflowSpec::default()),
        spec => WorkflowSpec::deserialize(spec),
    };
    // Another check refuses an unreadable spec; an unreadable stored workflow never runs.
    let (Ok(old), Ok(new)) = (spec(old), spec(new)) else { return Vec::new() };
    let fields = [
        ("hardwareRef", old.hardware_ref != new.hardware_ref),
        ("templateRef", old.template_ref != new.template_ref),
        ("hardwareMap", old.hardware_map != new.hardware_map),
        ("bootOptions", old.boot_options != new.boot_options),
    ];
    let detail = "field is immutable once the workflow has begun; delete it and create another";
    let changed = fields.into_iter().filter(|(_, differs)| *differs);
    changed.map(|(field, _)| FieldError::forbidden(format!("spec.{field}"), detail)).collect()
}

/// Checks that an Event is in its involved object's namespace (`default` if cluster-scoped).
pub(super) fn event(object: &Value, _old: Option<&Value>) -> Errors {
    let about = object["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    // An event about a cluster-scoped object is stored in `default`.
    if about == namespace || (about.is_empty() && namespace == "default") {
        return Vec::new();
    }
    let detail = "does not match event.namespace";
    vec![FieldError::invalid("involvedObject.namespace", &json!(about), detail)]
}

/// Checks that a new Event of `events.k8s.io` has an `eventTime` and the type `Normal` or `Warning`
/// (Kubernetes `pkg/apis/core/validation/events.go`). Core Events need neither.
pub(super) fn newer_event(object: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    if old.is_some() {
        return errors;
    }
    if object["eventTime"].is_null() {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = object["type"].as_str().unwrap_or_default();
    if !["Normal", "Warning"].contains(&kind) {
        let why = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid("type", &json!(""), why));
    }
    errors
}

/// Checks that a Lease's duration is positive and its number of transitions is not negative
/// (Kubernetes `pkg/apis/coordination/validation`).
pub(super) fn lease(object: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|seconds| *seconds <= 0) {
        let field = "spec.leaseDurationSeconds";
        errors.push(FieldError::invalid(field, &json!(seconds), "must be greater than 0"));
    }
    if let Some(count) = spec["leaseTransitions"].as_i64().filter(|count| *count < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.leaseTransitions", &json!(count), detail));
    }
    errors
}

/// Checks the keys of a ConfigMap (unique file names) and its size ([`MAX_SECRET_BYTES`]).
pub(super) fn config_map(object: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    let mut total = 0_usize;
    for field in ["data", "binaryData"] {
        for (key, value) in object[field].as_object().into_iter().flatten() {
            let at = format!("{field}[{key}]");
            if !is_key(key) {
                errors.push(FieldError::invalid(at.clone(), &json!(key), KEY_RULE));
            }
            if field == "data" && object["binaryData"].get(key).is_some() {
                let detail = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(at, &json!(key), detail));
            }
            let length = value.as_str().map_or(0, str::len);
            total = total.saturating_add(if field == "data" { length } else { length / 4 * 3 });
        }
    }
    if total > MAX_SECRET_BYTES {
        errors.push(FieldError::too_long("", MAX_SECRET_BYTES));
    }
    let Some(old) = old.filter(|old| old["immutable"] == json!(true)) else { return errors };
    let detail = "field is immutable when `immutable` is set";
    for field in ["immutable", "data", "binaryData"] {
        if old[field] != object[field] {
            errors.push(FieldError::forbidden(field, detail));
        }
    }
    errors
}

/// Replaces null values in a ConfigMap by empty values, as Go's decoder does.
pub(super) fn prepare_config_map(object: &mut Value) {
    for field in ["data", "binaryData"] {
        empty_for_null(object, field);
    }
    one_spelling(object, "binaryData");
    stdx::json::drop_nulls(object);
}

/// Encodes base64 values in canonical form. Validation later refuses values that are not base64.
fn one_spelling(object: &mut Value, field: &str) {
    for value in object[field].as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
        if let Some(Ok(bytes)) = value.as_str().map(bytes::decode) {
            *value = json!(STANDARD.encode(bytes));
        }
    }
}

fn empty_for_null(object: &mut Value, field: &str) {
    for value in object[field].as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
        if value.is_null() {
            *value = json!("");
        }
    }
}

/// Checks that the data of a Secret is base64, that the keys are file names, and that all values
/// together have at most [`MAX_SECRET_BYTES`].
pub(super) fn secret(object: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    let mut total = 0_usize;
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        let field = format!("data[{key}]");
        if !is_key(key) {
            errors.push(FieldError::invalid(field.clone(), &json!(key), KEY_RULE));
        }
        // Messages never quote the value, because it is secret.
        match value.as_str().and_then(|text| bytes::decode(text).ok()) {
            Some(bytes) => total = total.saturating_add(bytes.len()),
            None => {
                let detail = "must be a base64 string";
                errors.push(FieldError::invalid(field, &json!("<hidden>"), detail));
            }
        }
    }
    if object.get("data").is_some_and(|data| !data.is_object()) {
        let detail = "must be an object of base64 strings";
        errors.push(FieldError::invalid("data", &json!("<hidden>"), detail));
    }
    if total > MAX_SECRET_BYTES {
        errors.push(FieldError::too_long("data", MAX_SECRET_BYTES));
    }
    // An older release did not check types, so stored mistakes do not block an update.
    let before = old.map(typed_secret::mistakes).unwrap_or_default();
    let fresh = typed_secret::mistakes(object).into_iter();
    errors.extend(fresh.filter(|mistake| !before.contains(mistake)));
    let Some(old) = old else { return errors };
    if old["type"] != object["type"] {
        errors.push(FieldError::invalid("type", &object["type"], "field is immutable"));
    }
    if old["immutable"] == json!(true)
        && (old["data"] != object["data"] || object["immutable"] != json!(true))
    {
        let detail = "field is immutable when `immutable` is set";
        errors.push(FieldError::forbidden("data", detail));
    }
    errors
}

fn is_key(key: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let dots = key == "." || key.starts_with("..");
    !key.is_empty() && key.len() <= 253 && !dots && key.bytes().all(plain)
}

/// Moves `stringData` of a Secret into `data` as base64, and sets the default type.
pub(super) fn prepare_secret(object: &mut Value) {
    empty_for_null(object, "data");
    one_spelling(object, "data");
    stdx::json::drop_nulls(object);
    let Some(map) = object.as_object_mut() else { return };
    if let Some(Value::Object(texts)) = map.remove("stringData") {
        let data = map.entry("data").or_insert(Value::Null);
        if data.is_null() {
            *data = Value::Object(Map::new());
        }
        if let Some(data) = data.as_object_mut() {
            for (key, text) in texts {
                let encoded = match text {
                    Value::String(text) => json!(STANDARD.encode(text)),
                    // Validation refuses this value later.
                    other => other,
                };
                data.insert(key, encoded);
            }
        }
    }
    map.entry("type").or_insert_with(|| json!("Opaque"));
}

/// Sets the label `kubernetes.io/metadata.name` and the phase of a Namespace.
pub(super) fn prepare_namespace(object: &mut Value) {
    stdx::json::drop_nulls(object);
    let deleting = object["metadata"]["deletionTimestamp"].is_string();
    namespace::label(object);
    // The type check refuses a status that is not an object.
    if object["status"].is_object() || object["status"].is_null() {
        object["status"]["phase"] = json!(if deleting { "Terminating" } else { "Active" });
    }
}

#[cfg(test)]
mod tests;
