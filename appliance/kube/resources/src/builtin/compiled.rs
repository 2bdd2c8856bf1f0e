//! CustomResourceDefinition objects of the compiled-in kinds. Authorized clients can read these
//! objects; no client can change or delete them.
//!
//! Installers may write the definition of another release. The write succeeds, changes nothing, and
//! warns about fields and versions that the box does not have.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::custom;

/// Maximum depth to which two schemas are compared.
const MAX_DEPTH: usize = 64;
/// Maximum missing fields and versions in a warning.
const MAX_MISSING: usize = 8;

/// Returns the compiled-in definition `name`, such as `hardware.tinkerbell.org`; `None` if unknown.
pub fn manifest(name: &str) -> Option<&'static Value> {
    manifests().get(name)
}

/// Returns every compiled-in definition by its name.
pub fn manifests() -> &'static BTreeMap<String, Value> {
    static MANIFESTS: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    MANIFESTS.get_or_init(|| {
        let name = |crd: &Value| crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        custom::manifests().into_iter().map(|crd| (name(&crd), crd)).collect()
    })
}

/// Returns the first field (`group`, `scope`) in which the definitions differ; `None` if equal.
pub fn contradiction(compiled: &Value, asked: &Value) -> Option<String> {
    let fields = ["group", "scope"].into_iter();
    let mut differ = fields.filter(|field| compiled["spec"][*field] != asked["spec"][*field]);
    differ.next().map(|field| format!("spec.{field} {}", asked["spec"][field]))
}

/// Returns parts of `asked` that the compiled-in definition lacks: versions, and fields by their
/// path.
pub fn missing(compiled: &Value, asked: &Value) -> Vec<String> {
    let mut missing = Vec::new();
    for version in versions(asked) {
        let name = version["name"].as_str().unwrap_or_default();
        let Some(known) = versions(compiled).find(|one| one["name"] == name) else {
            missing.push(format!("version {name}"));
            continue;
        };
        let mut fields = Vec::new();
        beyond(schema(known), schema(version), "", MAX_DEPTH, &mut fields);
        let told = |field: String| format!("field {field} of version {name}");
        missing.extend(fields.into_iter().map(told));
    }
    missing.truncate(MAX_MISSING);
    missing
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    crd["spec"]["versions"].as_array().into_iter().flatten()
}

fn schema(version: &Value) -> &Value {
    &version["schema"]["openAPIV3Schema"]
}

/// Adds to `found` the paths of fields that `asked` has and `known` has not.
fn beyond(known: &Value, asked: &Value, path: &str, levels: usize, found: &mut Vec<String>) {
    let Some(levels) = levels.checked_sub(1) else { return };
    if known["x-kubernetes-preserve-unknown-fields"] == true || found.len() >= MAX_MISSING {
        return;
    }
    for (name, below) in asked["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match known["properties"].get(name) {
            // A map whose values share one schema accepts every name.
            None if known["additionalProperties"].is_object() => {}
            None => found.push(path),
            Some(known) => beyond(known, below, &path, levels, found),
        }
    }
    for (word, step) in [("items", "[*]"), ("additionalProperties", ".*")] {
        if let (Some(asked), Some(known)) = (asked.get(word), known.get(word)) {
            beyond(known, asked, &format!("{path}{step}"), levels, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{contradiction, manifest, manifests, missing};
    use serde_json::json;

    #[test]
    fn the_same_and_less_is_there_and_more_is_not() {
        for (name, compiled) in manifests() {
            assert_eq!(missing(compiled, compiled), [""; 0], "{name}");
        }
        let compiled = manifest("hardware.tinkerbell.org").unwrap();
        let at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let mut less = compiled.clone();
        less.pointer_mut(at).unwrap().as_object_mut().unwrap().remove("vendorData");
        assert_eq!(missing(compiled, &less), [""; 0]);
        let mut more = compiled.clone();
        more.pointer_mut(at).unwrap()["disks"]["items"]["properties"]["size"] = json!({});
        let field = "field .spec.disks[*].size of version v1alpha1";
        assert_eq!(missing(compiled, &more), [field]);
        let mut newer = compiled.clone();
        newer["spec"]["versions"][0]["name"] = json!("v1alpha2");
        assert_eq!(missing(compiled, &newer), ["version v1alpha2"]);
        assert_eq!(contradiction(compiled, &newer), None);
        newer["spec"]["scope"] = json!("Cluster");
        assert_eq!(contradiction(compiled, &newer).as_deref(), Some("spec.scope \"Cluster\""));
    }
}
