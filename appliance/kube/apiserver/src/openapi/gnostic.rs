//! Encoder of OpenAPI v2 as protobuf: the messages `openapi.v2` (google/gnostic-models,
//! `openapiv2/OpenAPIv2.proto`), which kubectl before 1.29 and Argo CD read.

use kube_protobuf::{put_bytes, put_fixed, put_number};
use serde_json::{Map, Value};

/// Maximum depth of a schema that is written; the conversion produces no deeper schema.
const MAX_LEVELS: usize = 64;

/// Encodes a v2 document.
pub(super) fn document(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    text(&mut out, 1, &document["swagger"]);
    let mut info = Vec::new();
    text(&mut info, 1, &document["info"]["title"]);
    text(&mut info, 2, &document["info"]["version"]);
    put_bytes(&mut out, 2, &info);
    put_bytes(&mut out, 8, &named(&document["paths"], 2, path_item));
    put_bytes(&mut out, 9, &named(&document["definitions"], 1, |one| schema(one, 0)));
    out
}

/// Encodes a JSON object as a map: an entry in the field `number` has a name and a value.
fn named(all: &Value, number: u32, write: impl Fn(&Value) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in all.as_object().into_iter().flatten() {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, name.as_bytes());
        put_bytes(&mut entry, 2, &write(value));
        put_bytes(&mut out, number, &entry);
    }
    out
}

fn text(out: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
        put_bytes(out, number, text.as_bytes());
    }
}

fn texts(out: &mut Vec<u8>, number: u32, values: &Value) {
    for value in values.as_array().into_iter().flatten() {
        text(out, number, value);
    }
}

fn flag(out: &mut Vec<u8>, number: u32, value: &Value) {
    if value == &Value::Bool(true) {
        put_number(out, number, 1);
    }
}

/// Encodes a value as the message `Any` with YAML text, which clients parse.
fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    // JSON is valid YAML, if a value has no other form.
    let text = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
    put_bytes(&mut out, 2, text.as_bytes());
    out
}

/// Encodes vendor extensions: the fields of `of` whose names start with `x-`.
fn extensions(out: &mut Vec<u8>, number: u32, of: &Value) {
    let all = of.as_object().into_iter().flatten();
    for (name, value) in all.filter(|(name, _)| name.starts_with("x-")) {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, name.as_bytes());
        put_bytes(&mut entry, 2, &any(value));
        put_bytes(out, number, &entry);
    }
}

fn path_item(item: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (method, number) in [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)] {
        if let Some(value) = item.get(method) {
            put_bytes(&mut out, number, &operation(value));
        }
    }
    parameters(&mut out, 9, &item["parameters"]);
    out
}

fn operation(operation: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    texts(&mut out, 1, &operation["tags"]);
    text(&mut out, 5, &operation["operationId"]);
    texts(&mut out, 6, &operation["produces"]);
    texts(&mut out, 7, &operation["consumes"]);
    parameters(&mut out, 8, &operation["parameters"]);
    put_bytes(&mut out, 9, &named(&operation["responses"], 1, response));
    extensions(&mut out, 13, operation);
    out
}

fn response(response: &Value) -> Vec<u8> {
    let mut inner = Vec::new();
    text(&mut inner, 1, &response["description"]);
    if let Some(value) = response.get("schema") {
        let mut item = Vec::new();
        put_bytes(&mut item, 1, &schema(value, 0));
        put_bytes(&mut inner, 2, &item);
    }
    let mut out = Vec::new();
    put_bytes(&mut out, 1, &inner);
    out
}

fn parameters(out: &mut Vec<u8>, number: u32, all: &Value) {
    for parameter in all.as_array().into_iter().flatten() {
        let mut either = Vec::new();
        if parameter["in"] == "body" {
            put_bytes(&mut either, 1, &body_parameter(parameter));
        } else {
            put_bytes(&mut either, 2, &other_parameter(parameter));
        }
        let mut item = Vec::new();
        put_bytes(&mut item, 1, &either);
        put_bytes(out, number, &item);
    }
}

fn body_parameter(parameter: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    text(&mut out, 2, &parameter["name"]);
    text(&mut out, 3, &parameter["in"]);
    flag(&mut out, 4, &parameter["required"]);
    put_bytes(&mut out, 5, &schema(&parameter["schema"], 0));
    out
}

/// Encodes a query or path parameter. The messages of the two have different field numbers.
fn other_parameter(parameter: &Value) -> Vec<u8> {
    let (place, form, unique) = if parameter["in"] == "path" { (4, 5, 19) } else { (3, 6, 20) };
    let mut inner = Vec::new();
    flag(&mut inner, 1, &parameter["required"]);
    text(&mut inner, 2, &parameter["in"]);
    text(&mut inner, 3, &parameter["description"]);
    text(&mut inner, 4, &parameter["name"]);
    text(&mut inner, form, &parameter["type"]);
    flag(&mut inner, unique, &parameter["uniqueItems"]);
    let mut out = Vec::new();
    put_bytes(&mut out, place, &inner);
    out
}

fn schema(schema: &Value, level: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let Some(fields) = schema.as_object().filter(|_| level <= MAX_LEVELS) else { return out };
    for (name, number) in [("$ref", 1), ("format", 2), ("description", 4), ("pattern", 13)] {
        text(&mut out, number, &schema[name]);
    }
    if let Some(default) = fields.get("default") {
        put_bytes(&mut out, 5, &any(default));
    }
    bounds(&mut out, fields);
    texts(&mut out, 19, &schema["required"]);
    for value in schema["enum"].as_array().into_iter().flatten() {
        put_bytes(&mut out, 20, &any(value));
    }
    match fields.get("additionalProperties") {
        Some(Value::Bool(others)) => {
            let mut inner = Vec::new();
            put_number(&mut inner, 2, u64::from(*others));
            put_bytes(&mut out, 21, &inner);
        }
        Some(value) => {
            let mut inner = Vec::new();
            put_bytes(&mut inner, 1, &self::schema(value, level + 1));
            put_bytes(&mut out, 21, &inner);
        }
        None => {}
    }
    if let Some(form) = fields.get("type") {
        let mut inner = Vec::new();
        text(&mut inner, 1, form);
        put_bytes(&mut out, 22, &inner);
    }
    if let Some(items) = fields.get("items") {
        let mut inner = Vec::new();
        put_bytes(&mut inner, 1, &self::schema(items, level + 1));
        put_bytes(&mut out, 23, &inner);
    }
    if let Some(properties) = fields.get("properties") {
        put_bytes(&mut out, 25, &named(properties, 1, |one| self::schema(one, level + 1)));
    }
    extensions(&mut out, 31, schema);
    out
}

/// Encodes the limits of a schema, such as `maximum` and `maxLength`.
fn bounds(out: &mut Vec<u8>, fields: &Map<String, Value>) {
    for (name, number) in [("multipleOf", 6), ("maximum", 7), ("minimum", 9)] {
        if let Some(value) = fields.get(name).and_then(Value::as_f64) {
            put_fixed(out, number, value.to_bits());
        }
    }
    for (name, number) in [
        ("maxLength", 11),
        ("minLength", 12),
        ("maxItems", 14),
        ("minItems", 15),
        ("maxProperties", 17),
        ("minProperties", 18),
    ] {
        if let Some(value) = fields.get(name).and_then(Value::as_u64) {
            put_number(out, number, value);
        }
    }
    for (name, number) in [("exclusiveMaximum", 8), ("exclusiveMinimum", 10), ("uniqueItems", 16)] {
        if fields.get(name) == Some(&Value::Bool(true)) {
            put_number(out, number, 1);
        }
    }
}
