//! Formats of whole objects.

use api::tinkerbell::AGENT_ATTRIBUTES;
use serde_json::{Value, json};

use crate::inventory::INVENTORY;

/// Annotations with JSON of programs. `machine inventory` shows the facts in two of them.
const PROGRAMS_ONLY: [&str; 3] =
    [AGENT_ATTRIBUTES, INVENTORY, "kubectl.kubernetes.io/last-applied-configuration"];

/// Returns kind and name of an object: `workflow/install`.
pub fn name(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("object").to_lowercase();
    let kind = if object["apiVersion"].as_str().is_some_and(|it| it.starts_with("bmc.")) {
        format!("{kind}.bmc.tinkerbell.org")
    } else {
        kind
    };
    format!("{kind}/{}", object["metadata"]["name"].as_str().unwrap_or_default())
}

/// Formats a value as JSON of several lines, indented by two spaces.
pub fn json(value: &Value) -> String {
    format!("{value:#}")
}

/// Formats a value as YAML that YAML 1.1 parsers read in the same way.
pub fn yaml(value: &Value) -> String {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: true };
    match serde_saphyr::to_string_with_options(value, options) {
        Ok(text) => text.trim_end().to_owned(),
        // JSON is YAML too.
        Err(_) => json(value),
    }
}

/// Returns the object without managed fields, and without annotations that only programs read.
pub fn brief(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(all) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            all.retain(|key, _| !PROGRAMS_ONLY.contains(&key.as_str()));
        }
    }
    object
}

/// Combines several objects into one document of the kind List.
pub fn list(items: Vec<Value>) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

#[cfg(test)]
mod tests {
    use super::{brief, name, yaml};
    use serde_json::{Value, json};

    #[test]
    fn names() {
        let hardware = json!({ "kind": "Hardware", "metadata": { "name": "nuc1" } });
        assert_eq!(name(&hardware), "hardware/nuc1");
        let job = json!({
            "apiVersion": "bmc.tinkerbell.org/v1alpha1",
            "kind": "Job",
            "metadata": { "name": "a" },
        });
        assert_eq!(name(&job), "job.bmc.tinkerbell.org/a");
    }

    #[test]
    fn a_brief_object_has_no_bookkeeping() {
        let object = json!({
            "metadata": {
                "name": "nuc1",
                "managedFields": [{ "manager": "tinbox" }],
                "annotations": {
                    "tinkerbell.org/agent-attributes": "{}",
                    "tinbox.dev/inventory": "{}",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}",
                    "rack": "7",
                },
            },
            "spec": { "agentID": "x" },
        });
        let metadata = json!({ "name": "nuc1", "annotations": { "rack": "7" } });
        let expected = json!({ "metadata": metadata, "spec": { "agentID": "x" } });
        assert_eq!(brief(object), expected);
        assert_eq!(brief(json!({ "kind": "Config" })), json!({ "kind": "Config" }));
    }

    #[test]
    fn yaml_reads_back_as_it_was() {
        let value = json!({
            "powerAction": "on", "vlan_id": "100", "mac": "52:54:00:77:00:01", "mode": "0600",
            "no": null, "empty": "", "list": [], "map": {}, "yes": true,
            "text": "a: b\n  - c\n\n#d\n", "trailing": "x \n\n", "tab": "\ta\r\n",
        });
        let text = yaml(&value);
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), value, "{text}");
        assert!(text.contains("powerAction: 'on'") || text.contains("powerAction: \"on\""));
    }
}
