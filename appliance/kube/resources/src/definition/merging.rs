//! Merge rules (list types, map types) of the fields of a kind, made from its schema on first use.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use super::ResourceDefinition;
use structured_merge::Schema;

/// Cached merge schema of one definition. A clone is empty, because the cloned definition may get
/// another schema.
#[derive(Default)]
pub struct Merging(OnceLock<Arc<Schema>>);

impl Clone for Merging {
    fn clone(&self) -> Self {
        Self::default()
    }
}

const ROOT: &str = "Object";
const METADATA: &str = "ObjectMeta";

impl Merging {
    /// Returns the merge schema made from `schema` on the first call. Without a usable schema,
    /// objects are merged field by field, and arrays are replaced as a whole.
    pub(super) fn of(&self, schema: Option<&Arc<schema::Schema>>, kind: &str) -> Arc<Schema> {
        let made = self.0.get_or_init(|| {
            let schema = schema.map(|schema| convert(schema.source()));
            let schema = schema.unwrap_or_else(|| Ok(Schema::deduced()));
            Arc::new(schema.unwrap_or_else(|why| {
                tracing::warn!(kind, %why, "cannot tell how the kind's fields merge");
                Schema::deduced()
            }))
        });
        made.clone()
    }
}

impl ResourceDefinition {
    /// Returns the merge rules of the fields of this version.
    pub(crate) fn merge_schema(&self) -> Arc<Schema> {
        self.merging.of(self.schema.as_ref(), &self.qualified())
    }

    /// Returns the merge rules of the stored fields, on which field ownership is based in all
    /// versions.
    pub(crate) fn stored_merge_schema(&self) -> Arc<Schema> {
        match &self.stored_form {
            Some(form) => form.merge_schema(&self.qualified()),
            None => self.merge_schema(),
        }
    }
}

fn convert(source: &Value) -> Result<Schema, structured_merge::Unconvertible> {
    let mut root = source.clone();
    complete(&mut root, true);
    let models = BTreeMap::from([
        (ROOT.to_owned(), root),
        (METADATA.to_owned(), metadata()),
        ("OwnerReference".to_owned(), owner()),
    ]);
    Schema::from_openapi(&models, ROOT)
}

/// Adds the schemas of apiVersion, kind and metadata to the root and to embedded objects
/// (apiextensions `pkg/controller/openapi/builder`).
fn complete(schema: &mut Value, is_object: bool) {
    let Some(fields) = schema.as_object_mut() else { return };
    let inner = fields.iter_mut().filter_map(|(name, value)| match name.as_str() {
        "properties" => value.as_object_mut(),
        _ => None,
    });
    inner.flatten().for_each(|(_, property)| complete(property, false));
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(name) {
            complete(inner, false);
        }
    }
    let is_embedded =
        fields.get("x-kubernetes-embedded-resource").is_some_and(|flag| *flag == true);
    if !is_object && !is_embedded {
        return;
    }
    let properties = fields.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Some(properties) = properties.as_object_mut() {
        for name in ["apiVersion", "kind"] {
            properties.insert(name.to_owned(), json!({ "type": "string" }));
        }
        properties.insert("metadata".to_owned(), json!({ "$ref": METADATA }));
    }
}

/// Returns the schema of `meta/v1 ObjectMeta`, limited to types and merge rules.
fn metadata() -> Value {
    let text = || json!({ "type": "string" });
    let number = || json!({ "type": "integer" });
    let time = || json!({ "type": "string", "format": "date-time" });
    let texts = || json!({ "type": "object", "additionalProperties": { "type": "string" } });
    json!({
        "type": "object",
        "properties": {
            "annotations": texts(),
            "creationTimestamp": time(),
            "deletionGracePeriodSeconds": number(),
            "deletionTimestamp": time(),
            "finalizers": {
                "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" },
            },
            "generateName": text(),
            "generation": number(),
            "labels": texts(),
            "managedFields": {
                "type": "array", "x-kubernetes-list-type": "atomic", "items": { "type": "object" },
            },
            "name": text(),
            "namespace": text(),
            "ownerReferences": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "items": { "$ref": "OwnerReference" },
            },
            "resourceVersion": text(),
            "selfLink": text(),
            "uid": text(),
        },
    })
}

/// Returns the schema of `meta/v1 OwnerReference`, whose fields have one common owner (atomic).
fn owner() -> Value {
    json!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": { "type": "string" },
            "blockOwnerDeletion": { "type": "boolean" },
            "controller": { "type": "boolean" },
            "kind": { "type": "string" },
            "name": { "type": "string" },
            "uid": { "type": "string" },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::convert;
    use crate::builtin;

    #[test]
    fn every_compiled_in_kind_says_how_it_merges() {
        let registry = builtin::registry().unwrap();
        for definition in registry.all() {
            let Some(schema) = &definition.schema else { continue };
            let converted = convert(schema.source());
            assert!(converted.is_ok(), "{definition:?}: {:?}", converted.err());
        }
    }

    #[test]
    fn objects_inside_of_others_have_typed_metadata() {
        let embedded = serde_json::json!({
            "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        });
        let source = serde_json::json!({ "type": "object", "properties": { "in": embedded } });
        let schema = convert(&source).unwrap();
        let root = schema.atom(schema.root()).map.clone().unwrap();
        let inner = schema.atom(root.fields["in"].of).map.clone().unwrap();
        assert_eq!(inner.fields["metadata"].of, root.fields["metadata"].of);
    }
}
