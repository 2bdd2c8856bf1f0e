//! Storage of agent reports as annotations of a Hardware: Tinkerbell's attributes under the
//! upstream name, and an inventory with further data. Every API client preserves annotations.

use std::collections::BTreeMap;

use api::meta::ObjectKey;
use api::tinkerbell::{AGENT_ATTRIBUTES, HARDWARE, Hardware};
use objects::{ObjectError, Objects, read};
use serde::Serialize;
use serde_json::{Value, json};

use agent_rpc::AgentReport;

/// Annotation with the agent's inventory as JSON.
pub const INVENTORY: &str = "tinbox.dev/inventory";
/// Maximum size of one annotation in bytes (upstream's limit for attributes).
const ANNOTATION_BYTES: usize = 64 << 10;
/// Maximum number of retries after a conflicting write of the Hardware.
const CONFLICTS_MAX: usize = 5;

/// Returns the annotations for a report. A value that is too long is omitted with a warning.
pub fn annotations(report: &AgentReport) -> BTreeMap<&'static str, String> {
    let mut annotations = BTreeMap::new();
    let mut add = |key, text: Option<String>| match text {
        Some(text) if text.len() <= ANNOTATION_BYTES => drop(annotations.insert(key, text)),
        Some(_) => tracing::warn!(agent_id = report.agent_id, key, "it is too long to be stored"),
        None => {}
    };
    add(AGENT_ATTRIBUTES, report.attributes.as_ref().and_then(text));
    add(INVENTORY, report.inventory.as_ref().and_then(text));
    annotations
}

fn text(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}

/// Adds annotations to a Hardware and returns the Hardware. Writes only a changed Hardware.
pub async fn keep(
    objects: &dyn Objects,
    key: &ObjectKey,
    annotations: &BTreeMap<&'static str, String>,
) -> Result<Hardware, ObjectError> {
    let mut tries = 0;
    loop {
        let object = objects.get(HARDWARE, key).await?;
        let Some(changed) = changed(&object, annotations) else { return read(object) };
        match objects.update(HARDWARE, changed).await {
            Err(ObjectError::Conflict(_)) if tries < CONFLICTS_MAX => tries += 1,
            written => return read(written?),
        }
    }
}

/// Returns the object with `annotations` added, or `None` if the object already has them.
fn changed(object: &Value, annotations: &BTreeMap<&'static str, String>) -> Option<Value> {
    let has = |key: &str| object["metadata"]["annotations"][key].as_str();
    if annotations.iter().all(|(key, text)| has(key) == Some(text)) {
        return None;
    }
    let mut object = object.clone();
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let kept = metadata.entry("annotations").or_insert_with(|| json!({}));
    if !kept.is_object() {
        *kept = json!({});
    }
    for (key, text) in annotations {
        kept[*key] = text.clone().into();
    }
    Some(object)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use agent_rpc::{Attributes, Inventory, MemoryModule, Network};
    use serde_json::json;

    use super::{AGENT_ATTRIBUTES, ANNOTATION_BYTES, INVENTORY, annotations, changed};
    use agent_rpc::AgentReport;

    #[test]
    fn it_is_written_only_when_it_changes() {
        let wanted = BTreeMap::from([(INVENTORY, "{}".to_owned())]);
        let bare = json!({ "metadata": { "name": "nuc1" }, "spec": { "agentID": "x" } });
        let once = changed(&bare, &wanted).unwrap();
        assert_eq!(once["metadata"]["annotations"][INVENTORY], "{}");
        assert_eq!(once["spec"], bare["spec"]);
        assert_eq!(changed(&once, &wanted), None);
        let other = BTreeMap::from([(INVENTORY, "{\"uuid\":\"x\"}".to_owned())]);
        assert!(changed(&once, &other).is_some());
        assert_eq!(changed(&once, &BTreeMap::new()), None);
    }

    #[test]
    fn what_is_too_long_is_left_out() {
        let network = Network { mac: Some("52:54:00:77:00:01".into()), ..Network::default() };
        let attributes = Attributes { network: vec![network], ..Attributes::default() };
        let slot = "x".repeat(ANNOTATION_BYTES);
        let module = MemoryModule { slot, ..MemoryModule::default() };
        let inventory = Inventory { memory: vec![module], ..Inventory::default() };
        let report = AgentReport {
            agent_id: "x".into(),
            attributes: Some(attributes),
            inventory: Some(inventory),
        };
        let kept = annotations(&report);
        assert_eq!(kept.keys().collect::<Vec<_>>(), [&AGENT_ATTRIBUTES]);
        let expected = r#"{"networkInterfaces":[{"mac":"52:54:00:77:00:01"}]}"#;
        assert_eq!(kept[AGENT_ATTRIBUTES], expected);
    }
}
