//! Tests of the parts of the documents on which clients depend; `tests/api` has tests with kubectl.

use serde_json::{Value, json};

use super::{OpenApiName, Specifications, gnostic, swagger};
use crate::wire::documents::Document;
use resources::builtin;
use resources::definition::Registry;

fn read(document: &Document) -> Value {
    serde_json::from_slice(&document.plain()).unwrap()
}

fn registry() -> Registry {
    builtin::registry().unwrap()
}

fn version(name: &str) -> Value {
    let name = OpenApiName::Version(name.to_owned());
    read(&Specifications::default().document(&registry(), &name).unwrap())
}

#[test]
fn every_reference_leads_somewhere() {
    let (specifications, registry) = (Specifications::default(), registry());
    let index = read(&specifications.document(&registry, &OpenApiName::Index).unwrap());
    let mut names: Vec<OpenApiName> = index["paths"]
        .as_object()
        .unwrap()
        .keys()
        .map(|name| OpenApiName::Version(name.clone()))
        .collect();
    assert!(names.contains(&OpenApiName::Version("apis/tinkerbell.org/v1alpha1".to_owned())));
    names.push(OpenApiName::Swagger);
    for name in names {
        let document = read(&specifications.document(&registry, &name).unwrap());
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(!references.is_empty());
        for reference in references {
            let place = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(place).is_some(), "{name:?}: {reference}");
        }
    }
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                found.push(reference.to_owned());
            }
            fields.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

#[test]
fn a_patch_takes_what_kubectl_sends() {
    for (document, path, strategic) in [
        ("api/v1", "/api/v1/namespaces/{namespace}/secrets/{name}", true),
        ("api/v1", "/api/v1/namespaces/{name}", true),
        (
            "apis/tinkerbell.org/v1alpha1",
            "/apis/tinkerbell.org/v1alpha1/namespaces/{namespace}/hardware/{name}",
            false,
        ),
    ] {
        let document = version(document);
        let patch = &document["paths"][path]["patch"];
        let parameters: Vec<&str> = patch["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(parameters, ["dryRun", "fieldManager", "fieldValidation", "force"], "{path}");
        let forms = patch["requestBody"]["content"].as_object().unwrap();
        assert_eq!(forms.contains_key("application/strategic-merge-patch+json"), strategic);
        assert!(patch["x-kubernetes-group-version-kind"]["kind"].is_string());
    }
}

#[test]
fn types_are_kubernetes_own() {
    let core = version("api/v1");
    let schemas = &core["components"]["schemas"];
    let secret = &schemas["io.k8s.api.core.v1.Secret"];
    assert_eq!(
        secret["properties"]["data"]["additionalProperties"],
        json!({ "type": "string", "format": "byte" })
    );
    assert_eq!(
        secret["x-kubernetes-group-version-kind"],
        json!([{ "group": "", "version": "v1", "kind": "Secret" }])
    );
    let meta = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"];
    let owners = &meta["properties"]["ownerReferences"];
    assert_eq!(owners["x-kubernetes-list-map-keys"], json!(["uid"]));
    assert_eq!(owners["x-kubernetes-patch-merge-key"], "uid");
    let event = &schemas["io.k8s.api.core.v1.Event"];
    assert_eq!(event["required"], json!(["metadata", "involvedObject"]));
    assert!(schemas["io.k8s.api.core.v1.SecretList"]["properties"]["items"].is_object());
}

#[test]
fn what_the_older_form_cannot_say_is_left_out() {
    let schema = json!({
        "type": "object",
        "required": ["a", "b"],
        "properties": {
            "a": { "type": "string", "nullable": true },
            "b": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }] },
            "c": { "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": { "d": { "type": "string" } } },
            "e": { "allOf": [{ "$ref": "#/components/schemas/x.Y" }], "description": "It." },
        },
    });
    assert_eq!(
        swagger::definition(&schema),
        json!({
            "type": "object",
            "required": ["b"],
            "properties": {
                "a": {},
                "b": { "x-kubernetes-int-or-string": true },
                "c": { "x-kubernetes-preserve-unknown-fields": true },
                "e": { "$ref": "#/definitions/x.Y", "description": "It." },
            },
        })
    );
}

#[test]
fn documents_are_made_once_for_each_state_of_the_kinds() {
    let (specifications, registry) = (Specifications::default(), registry());
    let name = OpenApiName::Version("api/v1".to_owned());
    let first = specifications.document(&registry, &name).unwrap();
    let again = specifications.document(&registry, &name).unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &again));
    let other = specifications.document(&registry.at(7), &name).unwrap();
    assert!(!std::sync::Arc::ptr_eq(&first, &other));
    assert_eq!(first.tag(), other.tag());
    let none = OpenApiName::Version("apis/none.example.org/v1".to_owned());
    assert!(specifications.document(&super::tests::registry(), &none).is_none());
}

#[test]
fn the_protobuf_form_begins_as_the_message_does() {
    let bytes = gnostic::document(&json!({
        "swagger": "2.0", "info": { "title": "t", "version": "v" },
        "paths": {}, "definitions": { "a": { "type": "string", "x-y": 1 } },
    }));
    let expected: &[u8] = &[
        0x0a, 3, b'2', b'.', b'0', 0x12, 6, 0x0a, 1, b't', 0x12, 1, b'v', 0x42, 0, 0x4a, 32, 0x0a,
        30, 0x0a, 1, b'a', 0x12, 25, 0xb2, 1, 8, 0x0a, 6, b's', b't', b'r', b'i', b'n', b'g', 0xfa,
        1, 11, 0x0a, 3, b'x', b'-', b'y', 0x12, 4, 0x12, 2, b'1', b'\n',
    ];
    assert_eq!(bytes, expected);
}
