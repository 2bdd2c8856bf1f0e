//! What the compiled-in kinds demand of their objects: the patterns, enums and rules of
//! Tinkerbell's CRDs that protect a boot from a typo, and Kubernetes' rules for Secrets and Events.
//! That their fields are of the right type is [`super::typed`]'s to check.

use api::tinkerbell::WorkflowSpec;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::field_error::FieldError;

type Errors = Vec<FieldError>;

/// The one-of a BMC action is.
const ACTIONS: [&str; 4] =
    ["powerAction", "oneTimeBootDeviceAction", "bootDevice", "virtualMediaAction"];
const POWER: [&str; 6] = ["on", "off", "soft", "status", "cycle", "reset"];
const DEVICES: [&str; 5] = ["pxe", "disk", "bios", "cdrom", "safe"];
const BOOT_MODES: [&str; 4] = ["netboot", "isoboot", "iso", "customboot"];
const STATES: [&str; 2] = ["Error", "Ready"];

/// Longest name of a Workflow in bytes: the names of its boot Jobs and of their Tasks begin with
/// words of their own, end in a number, and have to fit into a name's 253 bytes.
const MAX_WORKFLOW_NAME: usize = 200;

/// All data of one Secret, in bytes (Kubernetes' limit).
const MAX_SECRET_BYTES: usize = 1024 * 1024;

/// Hardware: MAC syntax, VLAN range, TFTP name and file only together.
pub(super) fn hardware(object: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    each(&object["spec"], "spec", "interfaces", &mut errors, |at, interface, errors| {
        let dhcp = &interface["dhcp"];
        let field = |name: &str| format!("{at}.dhcp.{name}");
        if let Some(mac) = given(dhcp, "mac")
            && !mac.as_str().is_some_and(is_mac)
        {
            let detail = "must be six pairs of lower-case hexadecimal digits with colons";
            errors.push(FieldError::invalid(field("mac"), mac, detail));
        }
        if let Some(vlan) = given(dhcp, "vlan_id")
            && !vlan.as_str().is_some_and(is_vlan)
        {
            let detail = "must be the decimal text of a number from 0 to 4096";
            errors.push(FieldError::invalid(field("vlan_id"), vlan, detail));
        }
        if given(dhcp, "tftp_server_name").is_some() != given(dhcp, "boot_file_name").is_some() {
            let detail = "tftp_server_name and boot_file_name must be given together";
            errors.push(FieldError::invalid(field("boot_file_name"), &json!(""), detail));
        }
    });
    one_of(&object["status"], "status", "state", &STATES, &mut errors);
    errors
}

/// Template: `data` is text.
pub(super) fn template(object: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    texts(&object["spec"], "spec", &["data"], &mut errors);
    errors
}

/// Workflow: references are text, boot modes are known, names leave room for those of its Jobs;
/// what a run is made of stays as it is once the run has begun.
pub(super) fn workflow(object: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    match old {
        Some(old) => begun(old, object, &mut errors),
        None => {
            if object["metadata"]["name"].as_str().is_some_and(|it| it.len() > MAX_WORKFLOW_NAME) {
                errors.push(FieldError::too_long("metadata.name", MAX_WORKFLOW_NAME));
            }
        }
    }
    let spec = &object["spec"];
    texts(spec, "spec", &["templateRef", "hardwareRef"], &mut errors);
    if let Some(map) = spec.get("hardwareMap") {
        string_map(map, "spec.hardwareMap", &mut errors);
    }
    let options = &spec["bootOptions"];
    one_of(options, "spec.bootOptions", "bootMode", &BOOT_MODES, &mut errors);
    for list in ["preparingActions", "postActions"] {
        let config = &options["custombootConfig"];
        let parent = "spec.bootOptions.custombootConfig";
        each(config, parent, list, &mut errors, action);
    }
    errors
}

/// Refuses another machine, template or way to boot for a run that has a state: half of it would
/// be of one and half of the other. Left out and empty are the same.
fn begun(old: &Value, new: &Value, errors: &mut Errors) {
    if old["status"]["state"].as_str().is_none_or(str::is_empty) {
        return;
    }
    let spec = |object: &Value| match &object["spec"] {
        Value::Null => Ok(WorkflowSpec::default()),
        spec => WorkflowSpec::deserialize(spec),
    };
    // What cannot be read is refused elsewhere, or runs nowhere.
    let (Ok(old), Ok(new)) = (spec(old), spec(new)) else { return };
    for (field, differs) in [
        ("hardwareRef", old.hardware_ref != new.hardware_ref),
        ("templateRef", old.template_ref != new.template_ref),
        ("hardwareMap", old.hardware_map != new.hardware_map),
        ("bootOptions", old.boot_options != new.boot_options),
    ] {
        if differs {
            let detail = "field is immutable once the workflow has begun; delete it and create \
                another";
            errors.push(FieldError::forbidden(format!("spec.{field}"), detail));
        }
    }
}

/// BMC machine: where to connect is said.
pub(super) fn machine(object: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    connection(&object["spec"], &mut errors);
    one_of(&object["status"], "status", "powerState", &["on", "off", "unknown"], &mut errors);
    errors
}

/// BMC job: names a machine, has at least one task.
pub(super) fn job(object: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    for name in ["name", "namespace"] {
        required_text(&spec["machineRef"], "spec.machineRef", name, &mut errors);
    }
    if spec["tasks"].as_array().is_none_or(Vec::is_empty) {
        errors.push(FieldError::required("spec.tasks", "must have at least one task"));
    }
    each(spec, "spec", "tasks", &mut errors, action);
    errors
}

/// BMC task: one action and where to do it.
pub(super) fn task(object: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    action("spec.task", &object["spec"]["task"], &mut errors);
    connection(&object["spec"], &mut errors);
    errors
}

/// Event: says what it is about, within its own namespace.
pub(super) fn event(object: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    let about = object["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    // An event about an object of the whole box is kept in `default`.
    let fits = about == namespace || (about.is_empty() && namespace == "default");
    if !fits {
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid("involvedObject.namespace", &json!(about), detail));
    }
    errors
}

/// Secret: data is base64 in strings, keys are file names, the whole stays small.
pub(super) fn secret(object: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Vec::new();
    let mut total = 0_usize;
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        let field = format!("data[{key}]");
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if key.is_empty() || key.len() > 253 || !key.bytes().all(plain) {
            let detail = "a valid key must consist of alphanumeric characters, '-', '_' or '.'";
            errors.push(FieldError::invalid(field.clone(), &json!(key), detail));
        }
        // The value itself is never quoted: it is a secret.
        match value.as_str().and_then(|text| STANDARD.decode(text).ok()) {
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

/// Secret: `stringData` becomes `data`, the type gets its default.
pub(super) fn prepare_secret(object: &mut Value) {
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
                    // Left as it is for the validation to refuse.
                    other => other,
                };
                data.insert(key, encoded);
            }
        }
    }
    map.entry("type").or_insert_with(|| json!("Opaque"));
}

/// Namespace: carries its own name as a label, and a phase.
pub(super) fn prepare_namespace(object: &mut Value) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let deleting = object["metadata"]["deletionTimestamp"].is_string();
    let metadata = crate::engine::object::metadata_mut(object);
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut()
        && !name.is_empty()
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
    object["status"] = json!({ "phase": if deleting { "Terminating" } else { "Active" } });
}

fn action(at: &str, action: &Value, errors: &mut Errors) {
    let keys = action.as_object().into_iter().flatten();
    let keys: Vec<&str> = keys.map(|(key, _)| key.as_str()).collect();
    let known = matches!(keys.as_slice(), [one] if ACTIONS.contains(one));
    if !known {
        let detail = format!("must be exactly one of {}", ACTIONS.join(", "));
        errors.push(FieldError::invalid(at, action, detail));
    }
    one_of(action, at, "powerAction", &POWER, errors);
    one_of(&action["bootDevice"], &format!("{at}.bootDevice"), "device", &DEVICES, errors);
    let parent = format!("{at}.oneTimeBootDeviceAction");
    each(&action["oneTimeBootDeviceAction"], &parent, "device", errors, |at, device, errors| {
        if !device.as_str().is_some_and(|device| DEVICES.contains(&device)) {
            errors.push(FieldError::not_supported(at, device, &DEVICES));
        }
    });
}

fn connection(spec: &Value, errors: &mut Errors) {
    let connection = &spec["connection"];
    required_text(connection, "spec.connection", "host", errors);
    if let Some(port) = given(connection, "port")
        && port.as_u64().is_none_or(|port| port > u64::from(u16::MAX))
    {
        let detail = "must be a port number";
        errors.push(FieldError::invalid("spec.connection.port", port, detail));
    }
}

/// A field that is there and not null: clients send null for what they leave out.
fn given<'a>(parent: &'a Value, name: &str) -> Option<&'a Value> {
    parent.get(name).filter(|value| !value.is_null())
}

fn each(
    parent: &Value,
    path: &str,
    name: &str,
    errors: &mut Errors,
    mut check: impl FnMut(&str, &Value, &mut Errors),
) {
    match parent.get(name).unwrap_or(&Value::Null) {
        Value::Null => {}
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                check(&format!("{path}.{name}[{at}]"), item, errors);
            }
        }
        other => {
            errors.push(FieldError::invalid(format!("{path}.{name}"), other, "must be an array"));
        }
    }
}

fn one_of(parent: &Value, path: &str, name: &str, allowed: &[&str], errors: &mut Errors) {
    if let Some(value) = given(parent, name)
        && !value.as_str().is_some_and(|text| text.is_empty() || allowed.contains(&text))
    {
        errors.push(FieldError::not_supported(format!("{path}.{name}"), value, allowed));
    }
}

fn texts(parent: &Value, path: &str, names: &[&str], errors: &mut Errors) {
    for name in names {
        if let Some(value) = given(parent, name).filter(|value| !value.is_string()) {
            errors.push(FieldError::invalid(format!("{path}.{name}"), value, "must be a string"));
        }
    }
}

fn required_text(parent: &Value, path: &str, name: &str, errors: &mut Errors) {
    if parent[name].as_str().is_none_or(str::is_empty) {
        errors.push(FieldError::required(format!("{path}.{name}"), "must not be empty"));
    }
}

fn string_map(map: &Value, path: &str, errors: &mut Errors) {
    let strings = map.as_object().is_some_and(|map| map.values().all(Value::is_string));
    if !strings && !map.is_null() {
        errors.push(FieldError::invalid(path, map, "must be an object of strings"));
    }
}

fn is_mac(text: &str) -> bool {
    let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let pairs: Vec<&str> = text.split(':').collect();
    pairs.len() == 6 && pairs.iter().all(|pair| pair.len() == 2 && pair.bytes().all(lower_hex))
}

fn is_vlan(text: &str) -> bool {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits && text.parse::<u16>().is_ok_and(|vlan| vlan <= 4096)
}

#[cfg(test)]
mod tests;
