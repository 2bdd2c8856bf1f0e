//! Hardware JSON of Tinkerbell before its Kubernetes kinds (`{"id": …, "metadata": {…}, "network":
//! {"interfaces": […]}}`).

use serde_json::{Map, Value, json};

/// Annotation with the id from the older file, by which commands find the machine.
pub const ID_ANNOTATION: &str = "tinbox.dev/legacy-id";

/// Returns true for the hardware JSON of older Tinkerbell.
pub fn is_legacy(value: &Value) -> bool {
    value.get("apiVersion").is_none() && value["network"]["interfaces"].is_array()
}

/// Converts the older JSON to a Hardware; the error is a phrase.
pub fn hardware(old: &Value) -> Result<Value, String> {
    let id = old["id"].as_str().unwrap_or_default();
    // Older files carried the metadata as JSON inside a string.
    let metadata = match &old["metadata"] {
        Value::String(text) => serde_json::from_str(text)
            .map_err(|error| format!("its metadata is not JSON in a string: {error}"))?,
        other => other.clone(),
    };
    let interfaces = old["network"]["interfaces"].as_array().cloned().unwrap_or_default();
    let interfaces: Vec<Value> = interfaces.iter().map(interface).collect();
    let name = [
        interfaces.first().and_then(|it| it["dhcp"]["hostname"].as_str()),
        metadata["instance"]["hostname"].as_str(),
        Some(id),
    ];
    let name = name.into_iter().flatten().find(|name| !name.is_empty());
    let name = name.ok_or("it has neither an id nor a hostname")?.to_lowercase();
    let mut spec = Map::new();
    spec.insert("interfaces".to_owned(), json!(interfaces));
    if metadata.is_object() {
        spec.insert("metadata".to_owned(), metadata);
    }
    let mut object = json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": { "name": name },
        "spec": spec,
    });
    if !id.is_empty() {
        object["metadata"]["annotations"] = json!({ ID_ANNOTATION: id });
    }
    Ok(object)
}

/// Converts the field names of `netboot` to camel case; `dhcp` still uses snake case.
fn interface(old: &Value) -> Value {
    let mut new = old.clone();
    let Some(netboot) = new["netboot"].as_object_mut() else { return new };
    for (from, to) in
        [("allow_pxe", "allowPXE"), ("allow_workflow", "allowWorkflow"), ("bootstrapper", "osie")]
    {
        if let Some(value) = netboot.remove(from) {
            netboot.insert(to.to_owned(), value);
        }
    }
    if let Some(osie) = netboot.get_mut("osie").and_then(Value::as_object_mut)
        && let Some(url) = osie.remove("base_url")
    {
        osie.insert("baseURL".to_owned(), url);
    }
    new
}
