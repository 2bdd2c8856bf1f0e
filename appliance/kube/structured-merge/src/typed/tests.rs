//! Typed values: validation, comparison, merging and removal.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Mismatches, Typed};
use crate::schema::Schema;
use crate::set::Set;

fn schema() -> Schema {
    let model = json!({"type": "object", "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "flag": {"type": "boolean"},
        "size": {"x-kubernetes-int-or-string": true},
        "when": {"type": "string", "format": "date-time"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "struct": {"type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer"}}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic",
            "additionalProperties": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "row": {"type": "array", "items": {"type": "integer"}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {
                "port": {"type": "integer"},
                "protocol": {"type": "string", "default": "TCP"},
                "name": {"type": "string"}}}},
        "list": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
            "items": {"type": "object", "properties": {
                "id": {"type": "string"},
                "value": {"type": "integer"},
                "tags": {"type": "array", "x-kubernetes-list-type": "set",
                    "items": {"type": "string"}}}}},
        "tree": {"$ref": "#/definitions/Tree"},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
    }});
    let tree = json!({"type": "object", "properties": {
        "value": {"type": "integer"}, "next": {"$ref": "#/definitions/Tree"}}});
    let models = BTreeMap::from([("Root".to_owned(), model), ("Tree".to_owned(), tree)]);
    Schema::from_openapi(&models, "Root").unwrap()
}

fn new<'a>(schema: &'a Schema, value: &Value) -> Result<Typed<'a>, Mismatches> {
    Typed::new(schema, Cow::Owned(value.clone()))
}

fn old<'a>(schema: &'a Schema, value: &Value) -> Typed<'a> {
    Typed::with_duplicates(schema, Cow::Owned(value.clone())).unwrap()
}

fn fields(fields: Value) -> Set {
    Set::from_fields_v1(&fields).unwrap()
}

#[test]
fn values_of_their_type_are_accepted() {
    let schema = schema();
    for value in [
        json!({}),
        json!(null),
        json!({"name": "x", "count": 1, "flag": true, "size": "10%", "when": null}),
        json!({"count": 1.5, "size": 10, "row": [1, 1], "set": ["a", "b"], "set2": null}),
        json!({"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}, {"name": "no port"}]}),
        json!({"tree": {"next": {"next": {"value": 1}}}, "open": {"x": [{"y": 1}]}}),
        json!({"labels": {"a": null}, "list": null}),
    ] {
        let declared = value.get("set2").is_none();
        assert_eq!(new(&schema, &value).is_ok(), declared, "{value}");
    }
}

#[test]
fn mismatches_read_as_upstream() {
    let schema = schema();
    for (value, message) in [
        (json!({"name": 1}), ".name: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({"count": "1"}), ".count: expected numeric (int or float), got string"),
        (json!({"flag": "x"}), ".flag: expected boolean, got &{x}"),
        (json!({"when": [1]}), ".when: expected any scalar, got &{[1]}"),
        (json!({"struct": [1, "x"]}), ".struct: expected map, got &{[1 x]}"),
        (json!({"set": {"a": 1}}), ".set: expected list, got &{map[a:1]}"),
        (json!({"more": 1}), ".more: field not declared in schema"),
        (json!({"struct": {"c": 1}}), ".struct.c: field not declared in schema"),
        (json!({"set": ["a", "a"]}), ".set: duplicate entries for key [=\"a\"]"),
        (
            json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}),
            ".ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
        ),
        (
            json!({"list": [{"value": 1}]}),
            ".list: element 0: associative list with keys has an element that omits all key fields \
             [\"id\"] (and doesn't have default values for any key fields)",
        ),
        (
            json!({"list": [null]}),
            ".list: element 0: associative list with keys may not have a null element",
        ),
        (
            json!({"set": [{}]}),
            ".set: element 0: associative list without keys has an element that's a map type",
        ),
        (
            json!({"list": [{"id": "x", "value": "y"}]}),
            ".list[id=\"x\"].value: expected numeric (int or float), got string",
        ),
        (json!({"row": [1, "y"]}), ".row[1]: expected numeric (int or float), got string"),
        (
            json!({"name": 1, "count": "1"}),
            "errors:\n  .count: expected numeric (int or float), got string\n  .name: expected \
             string, got &value.valueUnstructured{Value:1}",
        ),
    ] {
        assert_eq!(new(&schema, &value).unwrap_err().to_string(), message, "{value}");
    }
    let twice = json!({"set": ["a", "a"]});
    assert!(Typed::with_duplicates(&schema, Cow::Borrowed(&twice)).is_ok());
    let mut deep = json!({});
    for _ in 0..300 {
        deep = json!({"open": deep});
    }
    assert!(Typed::new(&schema, Cow::Borrowed(&deep)).is_err());
}

#[test]
fn field_sets_name_leaves_and_items() {
    let schema = schema();
    for (value, set) in [
        (json!({}), json!({})),
        (json!({"name": "x", "count": null}), json!({"f:name": {}, "f:count": {}})),
        (json!({"struct": {}}), json!({"f:struct": {}})),
        (json!({"struct": {"a": 1}}), json!({"f:struct": {"f:a": {}}})),
        (json!({"labels": {"k": "v"}}), json!({"f:labels": {"f:k": {}}})),
        (json!({"whole": {"k": 1}, "row": [1]}), json!({"f:whole": {}, "f:row": {}})),
        (json!({"set": ["a"], "list": []}), json!({"f:set": {"v:\"a\"": {}}})),
        (
            json!({"list": [{"id": "x", "tags": ["t"]}]}),
            json!({"f:list": {"k:{\"id\":\"x\"}": {
                ".": {}, "f:id": {}, "f:tags": {"v:\"t\"": {}}}}}),
        ),
        (
            json!({"ports": [{"port": 1}]}),
            json!({"f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}),
        ),
        // Unknown content: fields of objects and the objects themselves are in the set; arrays are
        // leaves.
        (
            json!({"open": {"x": {"y": 1}, "z": [1]}}),
            json!({"f:open": {"f:x": {".": {}, "f:y": {}}, "f:z": {}}}),
        ),
        (json!({"set": ["a", "a", "b"]}), json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}})),
        (
            json!({"list": [{"id": "x", "value": 1}, {"id": "x", "value": 2}]}),
            json!({"f:list": {"k:{\"id\":\"x\"}": {}}}),
        ),
    ] {
        assert_eq!(old(&schema, &value).field_set().to_fields_v1(), set, "{value}");
    }
}

#[test]
fn comparison_says_what_went_came_and_changed() {
    let schema = schema();
    let none = || json!({});
    for (one, other, removed, modified, added) in [
        (json!({"count": 1}), json!({"count": 1.0}), none(), none(), none()),
        (json!({"count": 1}), json!({"count": 2}), none(), json!({"f:count": {}}), none()),
        (json!({}), json!({"name": "x"}), none(), none(), json!({"f:name": {}})),
        (
            json!({"struct": {"a": 1}}),
            json!({}),
            json!({"f:struct": {".": {}, "f:a": {}}}),
            none(),
            none(),
        ),
        (
            json!({"whole": {"a": 1}, "row": [1, 2]}),
            json!({"whole": {"b": 1}, "row": [2, 1]}),
            none(),
            json!({"f:whole": {}, "f:row": {}}),
            none(),
        ),
        (
            json!({"set": ["a", "b"]}),
            json!({"set": ["c", "b"]}),
            json!({"f:set": {"v:\"a\"": {}}}),
            none(),
            json!({"f:set": {"v:\"c\"": {}}}),
        ),
        (
            json!({"list": [{"id": "x", "value": 1}, {"id": "y"}]}),
            json!({"list": [{"id": "y"}, {"id": "x", "value": 2}]}),
            none(),
            json!({"f:list": {"k:{\"id\":\"x\"}": {"f:value": {}}}}),
            none(),
        ),
        (json!({"labels": {}}), json!({"labels": null}), none(), json!({"f:labels": {}}), none()),
        (
            json!({"set": ["a", "a"]}),
            json!({"set": ["a"]}),
            json!({"f:set": {"v:\"a\"": {}}}),
            none(),
            json!({"f:set": {"v:\"a\"": {}}}),
        ),
        (
            json!({"open": {"x": 1}}),
            json!({"open": {"x": {"y": 1}}}),
            none(),
            json!({"f:open": {"f:x": {}}}),
            json!({"f:open": {"f:x": {"f:y": {}}}}),
        ),
    ] {
        let compared = old(&schema, &one).compare(&old(&schema, &other)).unwrap();
        let found = [&compared.removed, &compared.modified, &compared.added];
        assert_eq!(found.map(Set::to_fields_v1), [removed, modified, added], "{one} {other}");
    }
}

#[test]
fn merging_adds_and_replaces_and_orders() {
    let schema = schema();
    for (live, config, merged) in [
        (json!({"name": "a", "count": 1}), json!({"count": 2}), json!({"name": "a", "count": 2})),
        (json!({"whole": {"a": 1}}), json!({"whole": {"b": 1}}), json!({"whole": {"b": 1}})),
        (json!({"row": [1, 2]}), json!({"row": [3]}), json!({"row": [3]})),
        (json!({"labels": {"a": "1"}}), json!({"labels": null}), json!({"labels": {"a": "1"}})),
        (json!({"count": 1}), json!({"count": null}), json!({"count": null})),
        (
            json!({"set": ["a", "b", "c"]}),
            json!({"set": ["d", "c", "a"]}),
            json!({"set": ["b", "d", "c", "a"]}),
        ),
        (json!({"set": ["a", "b"]}), json!({"set": ["b"]}), json!({"set": ["a", "b"]})),
        (json!({"set": ["a", "a", "b"]}), json!({"set": ["a"]}), json!({"set": ["a", "b"]})),
        (
            json!({"list": [{"id": "x", "value": 1}, {"id": "y", "value": 2}]}),
            json!({"list": [{"id": "y", "value": 3}, {"id": "z"}]}),
            json!({"list": [
                {"id": "x", "value": 1}, {"id": "y", "value": 3}, {"id": "z"}]}),
        ),
        (
            json!({"list": [{"id": "x", "tags": ["a"]}]}),
            json!({"list": [{"id": "x", "tags": ["b"]}]}),
            json!({"list": [{"id": "x", "tags": ["a", "b"]}]}),
        ),
        (
            json!({"ports": [{"port": 1, "protocol": "TCP"}]}),
            json!({"ports": [{"port": 1, "name": "n"}]}),
            json!({"ports": [{"port": 1, "protocol": "TCP", "name": "n"}]}),
        ),
        (
            json!({"open": {"x": 1}}),
            json!({"open": {"x": {"y": 1}}}),
            json!({"open": {"x": {"y": 1}}}),
        ),
        (
            json!({"tree": {"next": {"value": 1}}}),
            json!({"tree": {"next": {"next": {}}}}),
            json!({"tree": {"next": {"value": 1, "next": {}}}}),
        ),
    ] {
        let merged_value = old(&schema, &live).merge(&new(&schema, &config).unwrap()).unwrap();
        assert_eq!(*merged_value.value(), merged, "{live} {config}");
    }
}

#[test]
fn items_are_taken_out() {
    let schema = schema();
    for (value, items, left) in [
        (json!({"name": "x", "count": 1}), json!({"f:name": {}}), json!({"count": 1})),
        (
            json!({"labels": {"a": "1", "b": "2"}}),
            json!({"f:labels": {"f:a": {}}}),
            json!({"labels": {"b": "2"}}),
        ),
        // A container becomes null without its last field, and so does an object without its only
        // field.
        (json!({"labels": {"a": "1"}}), json!({"f:labels": {"f:a": {}}}), json!({"labels": null})),
        (json!({"name": "x"}), json!({"f:name": {}}), json!(null)),
        (
            json!({"set": ["a", "b"], "list": [{"id": "x", "value": 1}, {"id": "y"}]}),
            json!({"f:set": {"v:\"a\"": {}}, "f:list": {
                "k:{\"id\":\"x\"}": {"f:value": {}}, "k:{\"id\":\"y\"}": {}}}),
            json!({"set": ["b"], "list": [{"id": "x"}]}),
        ),
        (json!({"set": ["a"]}), json!({"f:set": {"v:\"a\"": {}}}), json!({"set": null})),
        (json!({"whole": {"a": 1}}), json!({"f:whole": {"f:a": {}}}), json!({"whole": null})),
    ] {
        let (value, items) = (old(&schema, &value), fields(items));
        assert_eq!(*value.remove(&items).value(), left, "{:?}", value.value());
    }
}

#[test]
fn mistakes_without_end_are_counted() {
    let schema = schema();
    let row = vec!["x".repeat(5_000); 10_000];
    let wrong = new(&schema, &json!({"row": row, "count": "1"})).unwrap_err();
    assert_eq!(wrong.listed().len(), 100);
    let text = wrong.to_string();
    assert!(text.ends_with("\n  and 9901 more"), "{}", &text[text.len() - 50..]);
    assert!(text.len() < 200_000, "{} bytes", text.len());
    let wrong = new(&schema, &json!({"count": "1"})).unwrap_err();
    assert_eq!(wrong.to_string(), ".count: expected numeric (int or float), got string");
}

#[test]
fn sets_follow_a_schema_that_became_atomic() {
    let schema = schema();
    for (before, after) in [
        (json!({"f:whole": {"f:a": {}, "f:b": {}}}), Some(json!({"f:whole": {}}))),
        (json!({"f:row": {"i:0": {}}, "f:name": {}}), Some(json!({"f:name": {}, "f:row": {}}))),
        (json!({"f:whole": {}, "f:row": {}}), None),
        // A set of an atomic value that became granular stays unchanged.
        (json!({"f:struct": {}, "f:set": {}}), None),
        (json!({"f:tree": {"f:next": {"f:next": {}}}}), None),
        (json!({"f:open": {"f:x": {"f:y": {}}}, "f:gone": {"f:x": {}}}), None),
        (json!({"f:list": {"k:{\"id\":\"x\"}": {"f:tags": {"v:\"a\"": {}}}}}), None),
    ] {
        let reconciled = super::reconcile(&schema, &fields(before.clone()));
        assert_eq!(reconciled.map(|set| set.to_fields_v1()), after, "{before}");
    }
}
