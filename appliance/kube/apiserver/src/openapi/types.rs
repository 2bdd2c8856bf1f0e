//! OpenAPI v3 schemas of Kubernetes' own types, made from the catalog of `kube-protobuf`.

use std::collections::{BTreeMap, HashMap};

use kube_protobuf::{Field, Kind, Shape, Type, catalog};
use schema::Node;
use serde_json::{Map, Value, json};

/// Prefix of a schema's name in `$ref`.
pub(super) const REFERENCE: &str = "#/components/schemas/";

/// Our descriptions of the types that all kinds share; each line is `TYPE.FIELD<TAB>TEXT`.
const SHARED: &str = include_str!("descriptions.tsv");

/// Collector of schemas by name, and of descriptions by type and field.
#[derive(Default)]
pub(super) struct Schemas {
    pub all: BTreeMap<String, Value>,
    said: HashMap<(&'static str, &'static str), String>,
}

/// Returns name and schema of a special type, such as `Time`; `None` for scalars and messages.
fn special(kind: Kind) -> Option<(&'static str, Value)> {
    let any = json!({});
    Some(match kind {
        Kind::Time => (
            "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
            json!({ "type": "string", "format": "date-time" }),
        ),
        Kind::MicroTime => (
            "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
            json!({ "type": "string", "format": "date-time" }),
        ),
        Kind::Duration => {
            ("io.k8s.apimachinery.pkg.apis.meta.v1.Duration", json!({ "type": "string" }))
        }
        Kind::Quantity => (
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
        ),
        Kind::IntOrString => (
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            json!({
                "oneOf": [{ "type": "integer" }, { "type": "string" }],
                "format": "int-or-string",
            }),
        ),
        Kind::RawExtension => {
            ("io.k8s.apimachinery.pkg.runtime.RawExtension", json!({ "type": "object" }))
        }
        Kind::Fields => {
            ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", json!({ "type": "object" }))
        }
        Kind::Json => ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", any),
        Kind::SchemaOrBool => (SCHEMA_OR_BOOL, any),
        Kind::SchemaOrArray => (SCHEMA_OR_ARRAY, any),
        Kind::SchemaOrStrings => (SCHEMA_OR_STRINGS, any),
        _ => return None,
    })
}

const SCHEMA_OR_BOOL: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool";
const SCHEMA_OR_ARRAY: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray";
const SCHEMA_OR_STRINGS: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray";

/// Returns a reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{REFERENCE}{name}") })
}

impl Schemas {
    /// Collects the descriptions in a kind's own schema for the type `of` and its fields.
    pub(super) fn say(&mut self, of: &'static Type, node: &Node) {
        if !node.description().is_empty() {
            self.said.entry((of.name, "")).or_insert_with(|| node.description().to_owned());
        }
        self.say_fields(of, node);
    }

    fn say_fields(&mut self, of: &'static Type, node: &Node) {
        for field in &of.fields {
            let inner = match field.kind {
                Kind::Message(place) => Some(catalog().message(place)),
                _ => None,
            };
            if field.name.is_empty() {
                if let Some(inner) = inner {
                    self.say_fields(inner, node);
                }
                continue;
            }
            let Some(child) = node.child(field.name) else { continue };
            if !child.description().is_empty() {
                let key = (of.name, field.name);
                self.said.entry(key).or_insert_with(|| child.description().to_owned());
            }
            let item = child.items().or_else(|| child.additional_node()).unwrap_or(child);
            if let Some(inner) = inner {
                self.say(inner, item);
            }
        }
    }

    fn text(&self, of: &Type, field: &str) -> Option<String> {
        let said = self.said.get(&(of.name, field)).map(String::as_str);
        said.or_else(|| shared(of.name, field)).map(str::to_owned)
    }

    /// Adds the schemas of a type and of all types in its fields. Returns the schema's name.
    pub(super) fn add(&mut self, of: &'static Type) -> String {
        let name = of.open_api_name();
        if self.all.contains_key(&name) {
            return name;
        }
        // The placeholder ends the recursion of types that contain themselves.
        self.all.insert(name.clone(), Value::Null);
        let (mut properties, mut required) = (Map::new(), Vec::new());
        self.fields(of, &mut properties, &mut required);
        let mut schema = json!({ "type": "object" });
        if let Some(text) = self.text(of, "") {
            schema["description"] = json!(text);
        }
        if !properties.is_empty() {
            schema["properties"] = Value::Object(properties);
        }
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if let Some(map_type) = of.fact("mapType") {
            schema["x-kubernetes-map-type"] = json!(map_type);
        }
        self.all.insert(name.clone(), schema);
        name
    }

    fn fields(
        &mut self,
        of: &'static Type,
        properties: &mut Map<String, Value>,
        required: &mut Vec<&'static str>,
    ) {
        for field in &of.fields {
            match field.kind {
                Kind::Message(place) if field.name.is_empty() => {
                    self.fields(catalog().message(place), properties, required);
                }
                _ => {
                    let property = self.property(of, field);
                    properties.insert(field.name.to_owned(), property);
                    if field.required {
                        required.push(field.name);
                    }
                }
            }
        }
    }

    fn property(&mut self, of: &'static Type, field: &'static Field) -> Value {
        let value = self.value(field.kind);
        let text = self.text(of, field.name);
        let mut property = match field.shape {
            Shape::List => json!({ "type": "array", "items": value }),
            Shape::Map => json!({ "type": "object", "additionalProperties": value }),
            // A `$ref` must be the only key of its object.
            Shape::One if value.get("$ref").is_some() && text.is_some() => {
                json!({ "allOf": [value] })
            }
            Shape::One => value,
        };
        if let Some(text) = text {
            property["description"] = json!(text);
        }
        for (fact, extension) in [
            ("listType", "x-kubernetes-list-type"),
            ("mapType", "x-kubernetes-map-type"),
            ("strategy", "x-kubernetes-patch-strategy"),
            ("mergeKey", "x-kubernetes-patch-merge-key"),
        ] {
            if let Some(value) = field.fact(fact) {
                property[extension] = json!(value);
            }
        }
        if let Some(keys) = field.fact("keys") {
            property["x-kubernetes-list-map-keys"] = json!(keys.split(',').collect::<Vec<_>>());
        }
        if let Some(values) = field.fact("enum") {
            let values = json!(values.split(',').collect::<Vec<_>>());
            match field.shape {
                Shape::One => property["enum"] = values,
                Shape::List => property["items"]["enum"] = values,
                Shape::Map => property["additionalProperties"]["enum"] = values,
            }
        }
        if let Some(default) = field.fact("default") {
            property["default"] = serde_json::from_str(default).unwrap_or_default();
        }
        property
    }

    /// Returns the schema of one value of the type `kind`.
    fn value(&mut self, kind: Kind) -> Value {
        if let Some((name, schema)) = special(kind) {
            self.all.entry(name.to_owned()).or_insert(schema);
            if name == SCHEMA_OR_BOOL
                && let Some(schema) = catalog().named("apiextensions.v1.JSONSchemaProps")
            {
                self.add(schema);
            }
            return reference(name);
        }
        match kind {
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Int32 => json!({ "type": "integer", "format": "int32" }),
            Kind::Int64 => json!({ "type": "integer", "format": "int64" }),
            Kind::Double => json!({ "type": "number", "format": "double" }),
            Kind::Text => json!({ "type": "string" }),
            Kind::Bytes => json!({ "type": "string", "format": "byte" }),
            Kind::Message(place) => {
                let of = catalog().message(place);
                match of.fields.first() {
                    Some(items) if of.slice => {
                        json!({ "type": "array", "items": self.value(items.kind) })
                    }
                    _ => reference(&self.add(of)),
                }
            }
            _ => json!({}),
        }
    }
}

/// Returns our description of a shared type (empty `field`) or of its field, if any.
pub(super) fn shared(name: &str, field: &str) -> Option<&'static str> {
    SHARED.lines().find_map(|line| {
        let (about, text) = line.split_once('\t')?;
        let rest = about.strip_prefix(name)?;
        let known = rest.strip_prefix('.').unwrap_or_default();
        (known == field && rest.is_empty() == field.is_empty()).then_some(text)
    })
}
