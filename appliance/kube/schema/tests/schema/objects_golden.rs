//! Comparison with the answers of a real kube-apiserver v1.35 for the same schemas and objects
//! (tests/golden/objects.json). `tests/golden/record.py` records new answers.

use std::collections::BTreeMap;

use schema::{Findings, Schema, canonical_numbers, check_structural};
use serde_json::{Map, Value, json};

/// Fields that the recorded answers leave out.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

fn cases() -> Vec<Value> {
    let text = include_str!("../golden/objects.json");
    serde_json::from_str(text).expect("the recorded cases are JSON")
}

fn whole(fields: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "record.test/v1", "kind": "Case",
        "metadata": {"name": "probe"},
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
    object
}

fn answer(object: &Value, mut warnings: Vec<String>, found: Findings, code: u16) -> Value {
    let errors = found.errors;
    warnings.extend(found.warnings);
    warnings.sort();
    let mut object = object.clone();
    canonical_numbers(&mut object);
    let mut answer = json!({"code": if errors.is_empty() { code } else { 422 }});
    if errors.is_empty() {
        let fields: Map<String, Value> = object
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| !META.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        answer["object"] = Value::Object(fields);
    } else {
        let mut causes: Vec<[String; 3]> = errors
            .iter()
            .map(|error| [error.field.clone(), error.reason().to_owned(), error.body()])
            .collect();
        causes.sort();
        answer["causes"] = json!(causes);
    }
    if !warnings.is_empty() {
        answer["warnings"] = json!(warnings);
    }
    answer
}

fn decode(schema: &Schema, fields: &Value) -> (Value, Vec<String>) {
    let mut object = whole(fields);
    let warnings = schema.prune(&mut object);
    schema.default(&mut object);
    (object, warnings)
}

fn create(schema: &Schema, fields: &Value, has_status: bool) -> Value {
    if let Some(error) = schema.malformed(&whole(fields)) {
        return json!({"code": 400, "message": error.to_string()});
    }
    let (mut object, warnings) = decode(schema, fields);
    if let Some(map) = object.as_object_mut().filter(|_| has_status) {
        map.remove("status");
    }
    let found = schema.check(&object, None);
    answer(&object, warnings, found, 201)
}

fn update(schema: &Schema, before: &Schema, old: &Value, new: &Value, status: bool) -> Value {
    let (mut old, _) = decode(before, old);
    schema.default(&mut old);
    let (mut new, warnings) = decode(schema, new);
    if !status {
        let found = schema.check(&new, Some(&old));
        return answer(&new, warnings, found, 200);
    }
    let mut updated = old.clone();
    updated["status"] = new["status"].take();
    let found = schema.check_status(&updated, Some(&old));
    answer(&updated, warnings, found, 200)
}

#[test]
fn objects_are_answered_as_by_a_real_server() {
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut compared = 0;
    for case in cases() {
        let name = case["name"].as_str().unwrap_or_default().to_owned();
        let path = "spec.validation.openAPIV3Schema";
        let mut causes: Vec<[String; 3]> = check_structural(&case["schema"], path)
            .iter()
            .map(|error| [error.field.clone(), error.reason().to_owned(), error.body()])
            .collect();
        causes.sort();
        let refused = case["answers"].get("schema");
        let recorded = refused.map_or_else(|| json!([]), |answer| answer["causes"].clone());
        if json!(causes) != recorded {
            let difference =
                format!("  of its schema\n    real {recorded}\n    ours {}", json!(causes));
            wrong.entry(name.clone()).or_default().push(difference);
        }
        if refused.is_some() {
            continue;
        }
        let schema = Schema::parse(&case["schema"]).expect("the schema parses");
        let before = case.get("before").map(|before| Schema::parse(before).expect("it parses"));
        let status = case["status"] == true;
        let mut pairs = Vec::new();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        for (fields, recorded) in
            list(&case["creates"]).iter().zip(list(&case["answers"]["creates"]))
        {
            pairs.push((fields.clone(), create(&schema, fields, status), recorded));
        }
        for (fields, recorded) in
            list(&case["updates"]).iter().zip(list(&case["answers"]["updates"]))
        {
            let before = before.as_ref().unwrap_or(&schema);
            let ours = update(&schema, before, &fields[0], &fields[1], status);
            pairs.push((fields.clone(), ours, recorded));
        }
        for (fields, ours, recorded) in pairs {
            compared += 1;
            let mut recorded = recorded;
            if let Some(message) = recorded.get("message").and_then(Value::as_str) {
                // The engine writes the beginning of the message, which names the kind.
                let message = message.split_once(": ").map_or(message, |(_, rest)| rest);
                recorded["message"] = json!(message);
            }
            if ours != recorded {
                let difference = format!("  of {fields}\n    real {recorded}\n    ours {ours}");
                wrong.entry(name.clone()).or_default().push(difference);
            }
        }
    }
    for (name, difference) in &wrong {
        println!("{name}\n{}", difference.join("\n"));
    }
    assert!(wrong.is_empty(), "{} of {compared} answers differ", wrong.values().flatten().count());
    assert!(compared > 400, "only {compared} answers were compared");
}
