//! Conversion of OpenAPI v3 to v2. Parts that v2 cannot express, or that kubectl before 1.29 would
//! misread, are omitted (apiextensions-apiserver, `pkg/controller/openapi/v2/conversion.go`).

use serde_json::{Map, Value, json};

use super::kinds::preserves;
use super::types::REFERENCE;

const DEFINITION: &str = "#/definitions/";
/// Maximum depth to which a schema is converted; the schema parser rejects deeper schemas.
const MAX_LEVELS: usize = 64;
const JSON: &str = "application/json";
const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// Returns the v2 form of the v3 schema of a kind or type.
pub(super) fn definition(schema: &Value) -> Value {
    // kubectl before 1.29 reads listed properties as a complete list, so none are listed.
    if preserves(schema) {
        let mut open = json!({ "type": "object" });
        for kept in ["x-kubernetes-group-version-kind", "description"] {
            if let Some(value) = schema.get(kept) {
                open[kept] = value.clone();
            }
        }
        return open;
    }
    convert(schema, 0)
}

fn convert(schema: &Value, level: usize) -> Value {
    let Some(schema) = schema.as_object().filter(|_| level < MAX_LEVELS) else {
        return json!({});
    };
    if let Some(name) = referred(schema) {
        let mut reference = json!({ "$ref": format!("{DEFINITION}{name}") });
        if let Some(text) = schema.get("description") {
            reference["description"] = text.clone();
        }
        for (key, value) in schema.iter().filter(|(key, _)| key.starts_with("x-kubernetes-")) {
            reference[key] = value.clone();
        }
        return reference;
    }
    let set = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let nullable = set("nullable");
    let open = set("x-kubernetes-preserve-unknown-fields");
    let mut out = Map::new();
    for (key, value) in schema {
        let converted = match key.as_str() {
            "allOf" | "anyOf" | "oneOf" | "not" | "nullable" | "title" | "$schema" => continue,
            "properties" | "items" | "type" if nullable => continue,
            "properties" | "items" if open => continue,
            "properties" => properties(value, level),
            "items" => convert(value, level + 1),
            "additionalProperties" if value.is_object() => convert(value, level + 1),
            "required" => required(value, schema),
            _ => value.clone(),
        };
        out.insert(key.clone(), converted);
    }
    let shapeless = match out.get("type").and_then(Value::as_str) {
        Some("array") => !out.contains_key("items"),
        Some("object") => open,
        _ => false,
    };
    if shapeless {
        out.remove("type");
    }
    if out.get("required").is_some_and(|required| required == &json!([])) {
        out.remove("required");
    }
    // The two types of Kubernetes with alternative forms: integer or text, and Quantity.
    if let Some(first) = schema.get("oneOf").and_then(|choices| choices.get(1)) {
        let text = first["type"] == "string" || first["type"] == "number";
        if text && !out.contains_key("type") && schema.get("properties").is_none() {
            out.insert("type".to_owned(), json!("string"));
        }
    }
    Value::Object(out)
}

fn properties(value: &Value, level: usize) -> Value {
    let all = value.as_object().into_iter().flatten();
    all.map(|(name, schema)| (name.clone(), convert(schema, level + 1))).collect()
}

/// Returns the names in `required` without those of nullable fields.
fn required(value: &Value, schema: &Map<String, Value>) -> Value {
    let nullable = |name: &Value| {
        let property = name.as_str().and_then(|name| schema.get("properties")?.get(name));
        property.and_then(|property| property.get("nullable")) == Some(&Value::Bool(true))
    };
    value.as_array().into_iter().flatten().filter(|name| !nullable(name)).cloned().collect()
}

/// Returns the name of the referenced schema; `None` if the schema is more than a reference.
fn referred(schema: &Map<String, Value>) -> Option<&str> {
    let one = match schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([one]) if !schema.contains_key("type") => one.get("$ref"),
        _ => schema.get("$ref"),
    };
    one?.as_str()?.strip_prefix(REFERENCE)
}

/// Returns the v2 form of the operations on a path.
pub(super) fn path_item(item: &Value) -> Value {
    let mut out = Map::new();
    for method in METHODS {
        if let Some(operation) = item.get(method) {
            out.insert(method.to_owned(), self::operation(operation));
        }
    }
    out.insert("parameters".to_owned(), parameters(&item["parameters"]).into());
    Value::Object(out)
}

fn operation(operation: &Value) -> Value {
    let mut parameters = parameters(&operation["parameters"]);
    let mut consumes = vec![json!("*/*")];
    if let Some(content) = operation["requestBody"]["content"].as_object() {
        consumes = content.keys().map(|form| json!(form)).collect();
        let schema = content.values().next().map(|form| convert(&form["schema"], 0));
        let mut body = json!({ "name": "body", "in": "body", "schema": schema });
        if operation["requestBody"]["required"] == true {
            body["required"] = json!(true);
        }
        parameters.insert(0, body);
    }
    let mut responses = Map::new();
    for (code, response) in operation["responses"].as_object().into_iter().flatten() {
        let mut converted = json!({ "description": response["description"] });
        if let Some(form) = response["content"].get(JSON) {
            converted["schema"] = convert(&form["schema"], 0);
        }
        responses.insert(code.clone(), converted);
    }
    json!({
        "operationId": operation["operationId"],
        "tags": operation["tags"],
        "consumes": consumes,
        "produces": [JSON],
        "parameters": parameters,
        "responses": responses,
        "x-kubernetes-action": operation["x-kubernetes-action"],
        "x-kubernetes-group-version-kind": operation["x-kubernetes-group-version-kind"],
    })
}

fn parameters(all: &Value) -> Vec<Value> {
    let all = all.as_array().into_iter().flatten();
    all.map(|parameter| {
        let mut out = parameter.clone();
        if let Some(fields) = out.as_object_mut() {
            let schema = fields.remove("schema");
            fields.extend(schema.as_ref().and_then(Value::as_object).cloned().unwrap_or_default());
        }
        out
    })
    .collect()
}
