//! Tests with untrusted bytes: every parser returns a result or an error, and every accepted value
//! can be processed.

use http::HeaderMap;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::Authenticator;
use crate::filters::authentication;
use crate::wire::{negotiate, path, query::Query};
use resources::engine::Patch;
use resources::{FieldSelector, JsonPath, LabelSelector, Registry, builtin};

/// Strategy for JSON of every type, nested a few levels, with keys and texts of the API.
fn values() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just(String::new()),
        Just("metadata".to_owned()),
        Just("finalizers".to_owned()),
        Just("labels".to_owned()),
        Just("spec".to_owned()),
        Just("a".to_owned()),
        "\\PC{0,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|leaf| json!(leaf)),
        any::<i64>().prop_map(|leaf| json!(leaf)),
        words.clone().prop_map(|leaf| json!(leaf)),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let pairs = prop::collection::vec((words.clone(), inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::Array),
            pairs.prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn operations() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("add"),
        Just("remove"),
        Just("replace"),
        Just("move"),
        Just("copy"),
        Just("test"),
    ];
    let pointer = "(/(a|spec|-|0|1|01|~0|~1)){0,4}";
    let operation = (word, pointer, pointer, values()).prop_map(
        |(op, path, from, value)| json!({ "op": op, "path": path, "from": from, "value": value }),
    );
    prop::collection::vec(operation, 0..12).prop_map(Value::Array)
}

fn registry() -> Registry {
    builtin::registry().expect("a test of its own holds this")
}

proptest! {
    #[test]
    fn texts_are_read_or_refused(text in "\\PC{0,80}", object in values()) {
        let _ = path::parse(&text);
        let _ = path::parse(&format!("/apis/{text}"));
        if let Ok(query) = Query::parse(&text) {
            let _ = (query.list(), query.watch(), query.delete());
        }
        if let Ok(selector) = LabelSelector::parse(&text) {
            selector.matches(&object);
        }
        if let Ok(selector) = FieldSelector::parse(&text) {
            selector.matches(&object);
        }
        if let Ok(path) = JsonPath::parse(&text) {
            path.find(&object);
        }
    }

    #[test]
    fn selectors_are_read_or_refused(text in "[a-c,=!() .\\\\/]{0,40}", object in values()) {
        let _ = LabelSelector::parse(&text).map(|selector| selector.matches(&object));
        let _ = FieldSelector::parse(&text).map(|selector| selector.matches(&object));
    }

    #[test]
    fn headers_are_read_or_refused(bytes in prop::collection::vec(32_u8..=255, 0..80)) {
        if let Ok(value) = http::HeaderValue::from_bytes(&bytes) {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.clone());
            let token = authentication::bearer(&headers);
            let tokens = Authenticator::default();
            let user = token.and_then(|token| tokens.user(token, Timestamp::UNIX_EPOCH));
            prop_assert!(user.is_none());
            headers.insert(ACCEPT, value.clone());
            headers.insert(CONTENT_TYPE, value);
            let _ = negotiate::accepted(&headers);
            negotiate::media_type(&headers);
        }
    }

    #[test]
    fn patches_fit_or_are_refused(object in values(), merge in values(), list in operations()) {
        if let Ok(patch) = Patch::merge(merge) {
            let once = patch.apply(object.clone()).expect("a merge always fits");
            // RFC 7386: a second application changes nothing.
            prop_assert_eq!(patch.apply(once.clone()).expect("a merge always fits"), once);
        }
        if let Ok(patch) = Patch::json(&list) {
            let _ = patch.apply(object);
        }
    }

    #[test]
    fn every_kind_stands_any_object(object in values()) {
        for definition in registry().all() {
            let mut prepared = object.clone();
            if let Some(prepare) = &definition.prepare {
                resources::object::metadata_mut(&mut prepared);
                prepare(&mut prepared);
            }
            if let Some(validate) = &definition.validate {
                let _ = validate(&prepared, Some(&object));
            }
            let now = jiff::Timestamp::UNIX_EPOCH;
            let row = resources::table::RowObject::Metadata;
            let api_version = "meta.k8s.io/v1";
            let style = resources::table::Style { api_version, row, with_columns: true, now };
            resources::table::table(definition, &[prepared], json!({}), style);
        }
    }
}
