//! Whole objects with whole schemas: rejections and their messages, pruning and defaults.

use schema::Schema;
use serde_json::{Value, json};

fn parse(source: Value) -> Schema {
    Schema::parse(&source).expect("the schema parses")
}

fn spec_of(properties: Value) -> Schema {
    parse(json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties}},
    }))
}

fn mistakes(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<String> {
    schema.validate(new, old).iter().map(ToString::to_string).collect()
}

/// Schema, value and the expected messages.
type Row = (Value, Value, Vec<&'static str>);

fn scalar_rows() -> Vec<Row> {
    vec![
        (
            json!({"type": "string"}),
            json!(1),
            vec![
                "spec.x: Invalid value: \"integer\": spec.x in body must be of type \
                 string: \"integer\"",
            ],
        ),
        (
            json!({"type": "string"}),
            json!(null),
            vec![r#"spec.x: Invalid value: "null": spec.x in body must be of type string: "null""#],
        ),
        (json!({"type": "string", "nullable": true}), json!(null), vec![]),
        (json!({"type": "integer"}), json!(1.0), vec![]),
        (json!({"type": "number"}), json!(1), vec![]),
        (
            json!({"type": "integer"}),
            json!(1.5),
            vec![
                "spec.x: Invalid value: \"number\": spec.x in body must be of type \
                 integer: \"number\"",
            ],
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            vec![r#"spec.x: Unsupported value: "c": supported values: "a", "b""#],
        ),
        (
            json!({"type": "integer", "minimum": 2}),
            json!(1),
            vec!["spec.x: Invalid value: 1: spec.x in body should be greater than or equal to 2"],
        ),
        (
            json!({"type": "integer", "maximum": 2, "exclusiveMaximum": true}),
            json!(2),
            vec!["spec.x: Invalid value: 2: spec.x in body should be less than 2"],
        ),
    ]
}

fn text_and_list_rows() -> Vec<Row> {
    vec![
        (
            json!({"type": "number", "multipleOf": 0.5}),
            json!(1.3),
            vec!["spec.x: Invalid value: 1.3: spec.x in body should be a multiple of 0.5"],
        ),
        (
            json!({"type": "string", "maxLength": 1}),
            json!("äö"),
            vec!["spec.x: Too long: may not be more than 1 byte"],
        ),
        (
            json!({"type": "string", "minLength": 3}),
            json!("äö"),
            vec![
                "spec.x: Invalid value: \"äö\": spec.x in body should be at least 3 \
                  chars long",
            ],
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            vec![r#"spec.x: Invalid value: "b": spec.x in body should match '^a+$'"#],
        ),
        (
            json!({"type": "string", "format": "ipv4"}),
            json!("b"),
            vec![r#"spec.x: Invalid value: "b": spec.x in body must be of type ipv4: "b""#],
        ),
        (
            json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
            json!(["a", 2]),
            vec![
                "spec.x[1]: Invalid value: \"integer\": spec.x[1] in body must be of type \
                 string: \"integer\"",
                "spec.x: Too many: 2: must have at most 1 item",
            ],
        ),
        (
            json!({"type": "object", "minProperties": 1}),
            json!({}),
            vec!["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"a": "b"}),
            vec![
                "spec.x.a: Invalid value: \"string\": spec.x.a in body must be of type \
                 integer: \"string\"",
            ],
        ),
        (json!({"type": "object", "required": ["a"]}), json!({}), vec!["spec.x.a: Required value"]),
    ]
}

fn combination_rows() -> Vec<Row> {
    vec![
        (json!({"x-kubernetes-int-or-string": true}), json!("5"), vec![]),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            vec![
                "spec.x: Invalid value: \"boolean\": spec.x in body must be of type \
                 integer,string: \"boolean\"",
            ],
        ),
        (
            json!({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}),
            json!(3),
            vec![
                r#"<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)"#,
                "spec.x: Invalid value: 3: spec.x in body should be greater than or equal to 5",
            ],
        ),
        (
            json!({"type": "integer", "oneOf": [{"minimum": 1}, {"maximum": 5}]}),
            json!(3),
            vec![
                "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one \
                 schema (oneOf). Found 2 valid alternatives",
            ],
        ),
        (
            json!({"type": "integer", "allOf": [{"minimum": 5}]}),
            json!(3),
            vec![
                "spec.x: Invalid value: 3: spec.x in body should be greater than or equal to 5",
                "<nil>: Invalid value: \"\": \"spec.x\" must validate all the schemas \
                 (allOf). None validated",
            ],
        ),
        (
            json!({"type": "integer", "not": {"minimum": 5}}),
            json!(7),
            vec![r#"<nil>: Invalid value: "": "spec.x" must not validate the schema (not)"#],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            json!(["a", "a", "a"]),
            vec![r#"spec.x[1]: Duplicate value: "a""#],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object"}}),
            json!([{"k": 1}, {"k": 2}, {"k": 1, "v": 2}]),
            vec![r#"spec.x[2]: Duplicate value: {"k":1}"#],
        ),
    ]
}

#[test]
fn each_rule_is_told_in_upstream_words() {
    let rows = scalar_rows().into_iter().chain(text_and_list_rows()).chain(combination_rows());
    for (property, value, wanted) in rows {
        let schema = spec_of(json!({"x": property}));
        let found = mistakes(&schema, &json!({"spec": {"x": value}}), None);
        assert_eq!(found, wanted, "{property} of {value}");
    }
}

#[test]
fn what_is_invalid_but_unchanged_passes_an_update() {
    let schema = spec_of(json!({
        "a": {"type": "integer", "maximum": 1},
        "list": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {
                "k": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}}},
        "atomic": {"type": "array", "items": {"type": "integer", "maximum": 1}},
    }));
    let old = json!({"spec": {"a": 5, "list": [{"k": "x", "v": 7}, {"k": "y", "v": 8}],
        "atomic": [9, 0]}});
    assert_eq!(mistakes(&schema, &old, Some(&old)), Vec::<String>::new());
    let new = json!({"spec": {"a": 5, "list": [{"k": "y", "v": 8}, {"k": "x", "v": 6}],
        "atomic": [9, 1]}});
    assert_eq!(
        mistakes(&schema, &new, Some(&old)),
        [
            "spec.atomic[0]: Invalid value: 9: spec.atomic[0] in body should be less than \
             or equal to 1",
            "spec.list[1].v: Invalid value: 6: spec.list[1].v in body should be less than \
             or equal to 1",
        ]
    );
}

#[test]
fn a_status_is_told_of_from_the_status_on() {
    let schema = parse(json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["a"]},
        "status": {"type": "object", "properties": {"n": {"type": "integer"}}}}}));
    let object = json!({"spec": {}, "status": {"n": "x"}});
    let found = schema.validate_status(&object, None);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].to_string(),
        r#"status.n: Invalid value: "string": n in body must be of type integer: "string""#
    );
}

#[test]
fn unknown_fields_are_dropped_and_told() {
    let schema = parse(json!({"type": "object", "properties": {
    "spec": {"type": "object", "properties": {
        "known": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object",
            "properties": {"a": {"type": "string"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"strict": {"type": "object"}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "open": {"type": "object", "additionalProperties": true},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object"}}},
    }}}}));
    let mut object = json!({
        "apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n"}, "extra": 1,
        "spec": {
            "known": "x", "unknown": 1,
            "list": [{"a": "b", "c": 1}],
            "free": {"x": {"y": 1}, "strict": {"z": 1}},
            "labels": {"l": "v"},
            "open": {"o": {"p": 1}, "q": 2},
            "template": {"apiVersion": "v1", "kind": "T", "metadata": {"name": "t"}, "x": 1},
        },
    });
    let dropped = schema.prune(&mut object);
    assert_eq!(
        dropped,
        [
            r#"unknown field "extra""#,
            r#"unknown field "spec.free.strict.z""#,
            r#"unknown field "spec.list[0].c""#,
            r#"unknown field "spec.open.o.p""#,
            r#"unknown field "spec.template.x""#,
            r#"unknown field "spec.unknown""#,
        ]
    );
    assert_eq!(
        object,
        json!({
            "apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n"},
            "spec": {
                "known": "x", "list": [{"a": "b"}],
                "free": {"x": {"y": 1}, "strict": {}}, "labels": {"l": "v"},
                "open": {"o": {}, "q": 2},
                "template": {"apiVersion": "v1", "kind": "T", "metadata": {"name": "t"}},
            },
        })
    );
}

#[test]
fn defaults_are_filled_in_and_stray_nulls_go() {
    let schema = spec_of(json!({
        "a": {"type": "string", "default": "x"},
        "b": {"type": "object", "default": {},
            "properties": {"c": {"type": "integer", "default": 3}}},
        "n": {"type": "string", "nullable": true, "default": "y"},
        "stray": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "nullable": true,
            "properties": {"d": {"type": "boolean", "default": true}}}},
    }));
    let mut object = json!({"spec": {"a": null, "n": null, "stray": null, "list": [{}, null]}});
    schema.default(&mut object);
    assert_eq!(
        object,
        json!({"spec": {
        "a": "x", "b": {"c": 3}, "n": null, "list": [{"d": true}, null]}})
    );
}

#[test]
fn limits_hold() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"x": deep}});
    }
    assert!(matches!(Schema::parse(&deep), Err(schema::SchemaError::TooDeep { .. })));
    let many: serde_json::Map<String, Value> = (0..schema::MAX_SCHEMA_NODES)
        .map(|index| (format!("f{index}"), json!({"type": "string"})))
        .collect();
    let wide = json!({"type": "object", "properties": many});
    assert_eq!(Schema::parse(&wide).err(), Some(schema::SchemaError::TooManyNodes));
}

/// Metadata keeps only known fields, also where a default inserts the metadata.
#[test]
fn defaults_give_objects_within_objects_no_more_metadata_than_there_is() {
    let meta = json!({ "name": "Bar", "unknown": "x" });
    let whole = json!({ "apiVersion": "foos/v1", "kind": "Foo", "metadata": meta });
    let embedded = |default: Value, metadata: Value| {
        json!({
            "type": "object", "x-kubernetes-embedded-resource": true, "default": default,
            "properties": { "foo": { "type": "string" }, "metadata": metadata },
        })
    };
    let none = json!({ "apiVersion": "foos/v1", "kind": "Foo" });
    let source = json!({ "type": "object", "properties": {
        "whole": embedded(whole.clone(), json!({ "type": "object" })),
        "part": embedded(none, json!({ "type": "object", "default": meta })),
        "around": {
            "type": "object", "default": { "inner": whole },
            "properties": { "inner": {
                "type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
            } },
        },
    } });
    assert_eq!(schema::check_structural(&source, "schema"), []);
    let mut object = json!({});
    Schema::parse(&source).unwrap().default(&mut object);
    for path in ["/whole/metadata", "/part/metadata", "/around/inner/metadata"] {
        assert_eq!(object.pointer(path), Some(&json!({ "name": "Bar" })), "{path}");
    }
}

/// A null in an applied configuration stays null; a null in another request is removed.
#[test]
fn an_applied_null_stays() {
    let source = json!({ "type": "object", "properties": {
        "a": { "type": "object", "properties": { "b": { "type": "string", "default": "c" } } },
        "d": { "type": "string", "default": "e" },
    } });
    let schema = Schema::parse(&source).unwrap();
    let given = json!({ "a": null, "d": null });
    let (mut applied, mut sent) = (given.clone(), given);
    schema.fill_in(&mut applied);
    schema.default(&mut sent);
    assert_eq!((applied, sent), (json!({ "a": null, "d": "e" }), json!({ "d": "e" })));
}
