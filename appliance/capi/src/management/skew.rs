//! Difference between the provider's definitions in a management cluster and those of this release.
//! The box must work with the release before its own and with the one after.

use std::collections::BTreeSet;

use serde_json::Value;

/// Maximum number of fields that a message lists.
const FIELDS_SHOWN: usize = 5;

/// Fields that only one side has, each as `Kind.path`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skew {
    /// Fields of this release that the management cluster drops.
    pub missing: BTreeSet<String>,
    /// Fields of the management cluster that this release does not know.
    pub unknown: BTreeSet<String>,
}

impl Skew {
    /// Adds the differences of another definition.
    pub fn add(&mut self, other: Self) {
        self.missing.extend(other.missing);
        self.unknown.extend(other.unknown);
    }

    #[cfg(test)]
    fn is_none(&self) -> bool {
        self.missing.is_empty() && self.unknown.is_empty()
    }
}

/// Returns the first fields as text, and the number of further fields.
pub fn shown(fields: &BTreeSet<String>) -> String {
    let first: Vec<&str> = fields.iter().take(FIELDS_SHOWN).map(String::as_str).collect();
    match fields.len().checked_sub(FIELDS_SHOWN) {
        None | Some(0) => first.join(", "),
        Some(more) => format!("{} and {more} more", first.join(", ")),
    }
}

/// Compares the fields of two definitions of one kind, in the version that `own` has.
pub fn compare(own: &Value, there: &Value) -> Skew {
    let kind = own["spec"]["names"]["kind"].as_str().unwrap_or_default();
    let version = own["spec"]["versions"][0]["name"].clone();
    let versions = there["spec"]["versions"].as_array().into_iter().flatten();
    let there = versions.into_iter().find(|it| it["name"] == version).unwrap_or(&Value::Null);
    let mut skew = Skew::default();
    for part in ["spec", "status"] {
        let schema =
            |version: &Value| version["schema"]["openAPIV3Schema"]["properties"][part].clone();
        let path = format!("{kind}.{part}");
        walk(&path, &schema(&own["spec"]["versions"][0]), &schema(there), &mut skew);
    }
    skew
}

fn walk(path: &str, own: &Value, there: &Value, skew: &mut Skew) {
    let is_open = |schema: &Value| schema["x-kubernetes-preserve-unknown-fields"] == true;
    if is_open(own) || is_open(there) {
        return;
    }
    for part in ["items", "additionalProperties"] {
        if own[part].is_object() && there[part].is_object() {
            walk(path, &own[part], &there[part], skew);
        }
    }
    let fields = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_default();
    let (own, there) = (fields(own), fields(there));
    for (name, schema) in &own {
        let path = format!("{path}.{name}");
        match there.get(name) {
            Some(other) => walk(&path, schema, other, skew),
            None => {
                skew.missing.insert(path);
            }
        }
    }
    let unknown = there.keys().filter(|name| !own.contains_key(*name));
    skew.unknown.extend(unknown.map(|name| format!("{path}.{name}")));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::{Skew, compare, shown};
    use crate::components;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn equal_definitions_have_no_difference() {
        for definition in components::definitions() {
            let skew = compare(&definition, &definition);
            assert!(skew.is_none(), "{skew:?}");
        }
    }

    #[test]
    fn each_field_of_one_side_is_found() {
        let [own, ..] = components::definitions();
        let mut there = own.clone();
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
        let status = format!("{schema}/status/properties");
        let status = there.pointer_mut(&status).unwrap().as_object_mut().unwrap();
        status.remove("ready").unwrap();
        status["conditions"]["items"]["properties"]["severity"] = json!({ "type": "string" });
        let skew = compare(&own, &there);
        assert_eq!(skew.missing, set(&["TinkerbellCluster.status.ready"]));
        assert_eq!(skew.unknown, set(&["TinkerbellCluster.status.conditions.severity"]));
    }

    #[test]
    fn a_long_list_is_cut() {
        assert_eq!(shown(&set(&["a", "b"])), "a, b");
        assert_eq!(shown(&set(&["1", "2", "3", "4", "5"])), "1, 2, 3, 4, 5");
        assert_eq!(shown(&set(&["1", "2", "3", "4", "5", "6"])), "1, 2, 3, 4, 5 and 1 more");
        assert!(Skew::default().is_none());
    }
}
