//! Set operations and the JSON form of sets.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Set;
use crate::path::{Path, PathElement};
use crate::schema::{Atom, Field, List, Map, Scalar, Schema};

/// Creates a set from paths: `a/b` is the field b of the field a, and `[x]` the set item x.
fn set(paths: &[&str]) -> Set {
    Set::of(paths.iter().map(|path| {
        Path(
            path.split('/')
                .map(|step| match step.strip_prefix('[') {
                    Some(rest) => PathElement::Value(json!(rest.trim_end_matches(']'))),
                    None => PathElement::field(step),
                })
                .collect(),
        )
    }))
}

#[test]
fn membership_is_of_the_field_alone() {
    let one = set(&["a", "b/c"]);
    assert!(one.has(&[PathElement::field("a")]));
    assert!(!one.has(&[PathElement::field("b")]) && !one.has(&[]));
    assert!(one.has(&[PathElement::field("b"), PathElement::field("c")]));
    assert_eq!((one.len(), one.is_empty()), (2, false));
    assert_eq!(set(&["a", "b/c", "b/[x]"]).to_string(), ".a\n.b.c\n.b[=\"x\"]");
    let mut whole = Set::default();
    whole.insert(&[]);
    assert!(whole.is_empty());
}

#[test]
fn sets_are_added_and_taken_away() {
    type Paths = &'static [&'static str];
    let cases: [(Paths, Paths, [Paths; 4]); 5] = [
        // Columns: one, other, and their union, intersection, difference, recursive difference.
        (&["a"], &["b"], [&["a", "b"], &[], &["a"], &["a"]]),
        (&["a", "b"], &["b"], [&["a", "b"], &["b"], &["a"], &["a"]]),
        (&["a/b"], &["a"], [&["a", "a/b"], &[], &["a/b"], &[]]),
        (&["a"], &["a/b"], [&["a", "a/b"], &[], &["a"], &["a"]]),
        (
            &["a", "a/b", "a/c", "d/e"],
            &["a/b", "d"],
            [&["a", "a/b", "a/c", "d", "d/e"], &["a/b"], &["a", "a/c", "d/e"], &["a", "a/c"]],
        ),
    ];
    for (one, other, [union, intersection, difference, recursive]) in cases {
        let (one, other) = (set(one), set(other));
        assert_eq!(one.union(&other), set(union));
        assert_eq!(one.intersection(&other), set(intersection));
        assert_eq!(one.difference(&other), set(difference));
        assert_eq!(one.recursive_difference(&other), set(recursive));
    }
}

#[test]
fn declared_fields_come_with_what_is_inside_them() {
    let mut schema = Schema::deduced();
    let text = schema.inline(Atom { scalar: Some(Scalar::String), ..Atom::default() });
    let open = Map { element: Some(text), ..Map::default() };
    let open = schema.inline(Atom { map: Some(open), ..Atom::default() });
    let list = List { element: open, atomic: false, keys: vec!["name".to_owned()] };
    let list = schema.inline(Atom { list: Some(list), ..Atom::default() });
    let fields = [("open", open), ("list", list)]
        .map(|(name, of)| (name.to_owned(), Field { of, default: None }));
    let inner = Map { fields: fields.into(), ..Map::default() };
    let inner = schema.inline(Atom { map: Some(inner), ..Atom::default() });
    let outer = Map {
        fields: [("in".to_owned(), Field { of: inner, default: None })].into(),
        element: Some(Schema::DEDUCED),
        atomic: false,
    };
    let outer = schema.inline(Atom { map: Some(outer), ..Atom::default() });
    let given = set(&["in/open/x", "in/list/[x]", "other/y"]);
    let named = given.with_named_fields(&schema, Some(outer));
    assert_eq!(named, given.union(&set(&["in", "in/open", "in/list"])));
}

#[test]
fn sets_are_read_and_written() {
    let cases = [
        json!({}),
        json!({"f:a": {}}),
        json!({"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {"v:\"x\"": {}}}}),
        json!({"f:l": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}, "i:3": {}}}),
    ];
    for fields in cases {
        let read = Set::from_fields_v1(&fields).unwrap();
        assert_eq!(read.to_fields_v1(), fields);
    }
    let read = |fields: Value| Set::from_fields_v1(&fields).unwrap();
    assert_eq!(read(json!({"f:a": null})), set(&["a"]));
    assert_eq!(read(json!({"f:a": {"x:later": {}}})), set(&["a"]));
    assert_eq!(read(json!({"f:a": {"f:b": {}, ".": 1}})), set(&["a", "a/b"]));
}

#[test]
fn what_is_no_set_is_refused() {
    for bad in [json!(1), json!([]), json!({"f:a": 1}), json!({"a": {}}), json!({"k:[]": {}})] {
        assert!(Set::from_fields_v1(&bad).is_err(), "{bad}");
    }
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"f:a": deep});
    }
    assert!(Set::from_fields_v1(&deep).is_err());
}

fn any_set() -> impl Strategy<Value = Set> {
    let step = prop_oneof![Just("a"), Just("b"), Just("[x]"), Just("[y]")];
    let path = prop::collection::vec(step, 1..4).prop_map(|steps| steps.join("/"));
    prop::collection::vec(path, 0..12).prop_map(|paths| {
        let paths: Vec<_> = paths.iter().map(String::as_str).collect();
        set(&paths)
    })
}

proptest! {
    #[test]
    fn laws_of_sets(one in any_set(), other in any_set()) {
        let (both, all) = (one.intersection(&other), one.union(&other));
        prop_assert_eq!(&both, &other.intersection(&one));
        prop_assert_eq!(&all, &other.union(&one));
        let only = one.difference(&other);
        prop_assert_eq!(only.union(&both).paths(), one.paths());
        prop_assert!(only.intersection(&other).is_empty());
        prop_assert_eq!(all.len() + both.len(), one.len() + other.len());
        for path in one.recursive_difference(&other).paths() {
            prop_assert!((1..=path.0.len()).all(|upto| !other.has(&path.0[..upto])));
        }
        prop_assert_eq!(Set::from_fields_v1(&one.to_fields_v1()).unwrap(), one);
    }

    #[test]
    fn no_json_breaks_the_reader(key in ".{0,12}", inner in ".{0,8}") {
        let _ = Set::from_fields_v1(&json!({ key: { inner: {} } }));
    }
}
