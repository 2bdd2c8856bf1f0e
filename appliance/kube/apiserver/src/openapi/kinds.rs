//! Schemas of the served kinds and their lists, and schemas that all kinds share.

use kube_protobuf::{Type, catalog};
use serde_json::{Value, json};

use super::types::{Schemas, reference, shared};
use resources::definition::ResourceDefinition;
use resources::served::{Kind, Resource};

pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

const OBJECT_META: &str = "meta.v1.ObjectMeta";
const LIST_META: &str = "meta.v1.ListMeta";
const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";
const SELECTABLE_FIELDS: &str = "x-kubernetes-selectable-fields";
const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";

/// Returns the protobuf catalog's type of a kind of Kubernetes; `None` for a custom kind.
fn native(kind: Kind<'_>) -> Option<&'static Type> {
    match kind.group {
        "" => catalog().kind(kind.version, kind.name),
        group => catalog().kind(&format!("{group}/{}", kind.version), kind.name),
    }
}

/// Returns the schema's name of a kind, such as `org.tinkerbell.v1alpha1.Hardware`.
pub(super) fn name(kind: Kind<'_>) -> String {
    match native(kind) {
        Some(of) => of.open_api_name(),
        None => {
            let group: Vec<&str> = kind.group.rsplit('.').collect();
            format!("{}.{}.{}", group.join("."), kind.version, kind.name)
        }
    }
}

/// Returns the value of `x-kubernetes-group-version-kind` for a kind.
pub(super) fn identity(kind: Kind<'_>) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": kind.name })
}

/// Adds the schemas that all stored kinds share: `Status`, `DeleteOptions` and `Patch`.
pub(super) fn add_common(schemas: &mut Schemas) {
    for (name, kind) in [("meta.v1.Status", "Status"), ("meta.v1.DeleteOptions", "DeleteOptions")] {
        if let Some(of) = catalog().named(name) {
            let name = schemas.add(of);
            let kind = Kind { group: "", version: "v1", name: kind, qualified: false };
            complete(schemas.all.entry(name).or_default(), kind);
        }
    }
    let patch = json!({ "type": "object", "description": "Patch in the format of its type." });
    schemas.all.insert(PATCH.to_owned(), patch);
}

/// Adds the schemas of a resource, of its list, and of the kinds of its subresources.
pub(super) fn add(schemas: &mut Schemas, resource: &Resource<'_>) {
    add_kind(schemas, resource.kind, resource.definition);
    for part in resource.parts.iter().filter(|part| part.kind.name != resource.kind.name) {
        add_kind(schemas, part.kind, None);
    }
    let Some(definition) = resource.definition else { return };
    let list = Kind { name: &definition.list_kind, ..resource.kind };
    let items = json!({
        "type": "array",
        "items": reference(&name(resource.kind)),
        "description": shared("list", "items"),
    });
    let mut schema = json!({
        "type": "object",
        "description": format!("{} is a list of {}.", list.name, resource.kind.name),
        "required": ["items"],
        "properties": { "items": items, "metadata": meta(schemas, LIST_META, "list") },
    });
    complete(&mut schema, list);
    say_selectable(&mut schema, definition);
    schemas.all.insert(list_name(resource.kind, definition), schema);
}

/// Returns the schema's name of a kind's list, such as `…HardwareList`.
pub(super) fn list_name(kind: Kind<'_>, definition: &ResourceDefinition) -> String {
    let name = name(kind);
    let package = name.strip_suffix(kind.name).unwrap_or_default();
    format!("{package}{}", definition.list_kind)
}

fn add_kind(schemas: &mut Schemas, kind: Kind<'_>, definition: Option<&ResourceDefinition>) {
    let fields = definition.and_then(|definition| definition.schema.as_deref());
    if let Some(of) = native(kind) {
        if let Some(fields) = fields {
            schemas.say(of, fields.root());
        }
        let name = schemas.add(of);
        complete(schemas.all.entry(name).or_default(), kind);
        return;
    }
    let mut schema = match fields {
        Some(fields) => custom(schemas, fields.source()),
        // An empty list of properties would tell kubectl that the kind has no fields.
        None => json!({ "type": "object" }),
    };
    schema[GROUP_VERSION_KIND] = json!([identity(kind)]);
    if let Some(definition) = definition {
        say_selectable(&mut schema, definition);
    }
    schemas.all.insert(name(kind), schema);
}

/// Adds the selectable fields to the schema (apiextensions `pkg/controller/openapi/builder`).
fn say_selectable(schema: &mut Value, definition: &ResourceDefinition) {
    let fields = definition.selectable_fields.iter().filter(|_| !definition.native);
    let fields: Vec<Value> = fields.map(|path| json!({ "fieldPath": path })).collect();
    if !fields.is_empty() {
        schema[SELECTABLE_FIELDS] = Value::Array(fields);
    }
}

/// Returns the schema in a CustomResourceDefinition with `apiVersion`, `kind` and `metadata` added.
fn custom(schemas: &mut Schemas, source: &Value) -> Value {
    let mut schema = source.clone();
    if !schema.is_object() {
        return json!({ "type": "object" });
    }
    embed(schemas, &mut schema, 0);
    as_object(schemas, &mut schema);
    schema
}

/// Maximum depth to which embedded objects are searched; the schema parser rejects deeper schemas.
const MAX_LEVELS: usize = 64;

/// Adds `apiVersion`, `kind` and `metadata` to the schemas of embedded objects.
fn embed(schemas: &mut Schemas, schema: &mut Value, level: usize) {
    if level > MAX_LEVELS {
        return;
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(|property| embed(schemas, property, level + 1));
    }
    for field in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(field) {
            embed(schemas, inner, level + 1);
        }
    }
    if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        as_object(schemas, schema);
        let mut required = schema["required"].as_array().cloned().unwrap_or_default();
        for field in ["kind", "apiVersion"] {
            if !required.iter().any(|one| one == field) {
                required.push(json!(field));
            }
        }
        schema["required"] = Value::Array(required);
    }
}

fn as_object(schemas: &mut Schemas, schema: &mut Value) {
    let metadata = meta(schemas, OBJECT_META, "kind");
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let properties = &mut schema["properties"];
    properties["apiVersion"] = text("apiVersion");
    properties["kind"] = text("kind");
    properties["metadata"] = metadata;
}

fn text(field: &str) -> Value {
    json!({ "type": "string", "description": shared("kind", field) })
}

fn meta(schemas: &mut Schemas, name: &str, of: &str) -> Value {
    let Some(meta) = catalog().named(name) else { return json!({ "type": "object" }) };
    json!({ "allOf": [reference(&schemas.add(meta))], "description": shared(of, "metadata") })
}

/// Adds `x-kubernetes-group-version-kind` and the fields of every object to the schema of `kind`.
fn complete(schema: &mut Value, kind: Kind<'_>) {
    if !schema.is_object() {
        *schema = json!({ "type": "object" });
    }
    if schema[GROUP_VERSION_KIND].is_array() {
        return;
    }
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let properties = &mut schema["properties"];
    properties["apiVersion"] = text("apiVersion");
    properties["kind"] = text("kind");
    if let Some(metadata) = properties.get_mut("metadata") {
        metadata["description"] = json!(shared("kind", "metadata"));
        if let Some(reference) = metadata.as_object_mut().and_then(|meta| meta.remove("$ref")) {
            metadata["allOf"] = json!([{ "$ref": reference }]);
        }
    }
    schema[GROUP_VERSION_KIND] = json!([identity(kind)]);
}

/// Returns true if a schema accepts unknown fields (`x-kubernetes-preserve-unknown-fields`).
pub(super) fn preserves(schema: &Value) -> bool {
    schema.get(PRESERVES) == Some(&Value::Bool(true))
}
