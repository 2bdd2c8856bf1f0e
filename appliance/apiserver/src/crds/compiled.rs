//! The compiled-in kinds as objects: everybody can read them, nobody can change or delete them.
//!
//! Installers write the definitions they bring. One that asks for no more than is compiled in has
//! what it wants, and is answered as if it had been written; one that asks for fields or versions
//! the box does not have is told so.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use crate::builtin;

/// Deepest level of a schema that is compared.
const MAX_DEPTH: usize = 64;

/// The compiled-in definition of that name: `hardware.tinkerbell.org`.
pub fn manifest(name: &str) -> Option<&'static Value> {
    manifests().get(name)
}

/// Every compiled-in definition by its name.
pub fn manifests() -> &'static BTreeMap<String, Value> {
    static MANIFESTS: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    MANIFESTS.get_or_init(|| {
        let name = |crd: &Value| crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        builtin::manifests().into_iter().map(|crd| (name(&crd), crd)).collect()
    })
}

/// What `asked` has that the compiled-in definition has not: a version, or a field by its path.
pub fn missing(compiled: &Value, asked: &Value) -> Option<String> {
    for field in ["group", "scope"] {
        if compiled["spec"][field] != asked["spec"][field] {
            return Some(format!("spec.{field} {}", asked["spec"][field]));
        }
    }
    for version in versions(asked) {
        let name = version["name"].as_str().unwrap_or_default();
        let Some(known) = versions(compiled).find(|one| one["name"] == name) else {
            return Some(format!("version {name}"));
        };
        let (ours, theirs) = (schema(known), schema(version));
        if let Some(field) = beyond(ours, theirs, MAX_DEPTH) {
            return Some(format!("field {field} of version {name}"));
        }
    }
    None
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    crd["spec"]["versions"].as_array().into_iter().flatten()
}

fn schema(version: &Value) -> &Value {
    &version["schema"]["openAPIV3Schema"]
}

/// The path of the first field that only `asked` has.
fn beyond(known: &Value, asked: &Value, levels: usize) -> Option<String> {
    let levels = levels.checked_sub(1)?;
    if known["x-kubernetes-preserve-unknown-fields"] == true {
        return None;
    }
    for (name, below) in asked["properties"].as_object().into_iter().flatten() {
        match known["properties"].get(name) {
            // A map with values of one schema knows every name.
            None if known["additionalProperties"].is_object() => {}
            None => return Some(format!(".{name}")),
            Some(known) => {
                if let Some(rest) = beyond(known, below, levels) {
                    return Some(format!(".{name}{rest}"));
                }
            }
        }
    }
    for (word, step) in [("items", "[*]"), ("additionalProperties", ".*")] {
        if let (Some(asked), Some(known)) = (asked.get(word), known.get(word))
            && let Some(rest) = beyond(known, asked, levels)
        {
            return Some(format!("{step}{rest}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{manifest, manifests, missing};
    use serde_json::json;

    #[test]
    fn the_same_and_less_is_there_and_more_is_not() {
        for (name, compiled) in manifests() {
            assert_eq!(missing(compiled, compiled), None, "{name}");
        }
        let compiled = manifest("hardware.tinkerbell.org").unwrap();
        let at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let mut less = compiled.clone();
        less.pointer_mut(at).unwrap().as_object_mut().unwrap().remove("vendorData");
        assert_eq!(missing(compiled, &less), None);
        let mut more = compiled.clone();
        more.pointer_mut(at).unwrap()["disks"]["items"]["properties"]["size"] = json!({});
        let field = "field .spec.disks[*].size of version v1alpha1";
        assert_eq!(missing(compiled, &more).as_deref(), Some(field));
        let mut newer = compiled.clone();
        newer["spec"]["versions"][0]["name"] = json!("v1alpha2");
        assert_eq!(missing(compiled, &newer).as_deref(), Some("version v1alpha2"));
    }
}
