use serde_json::{Value, json};

use super::{Form, Node, canonical, mend, read_time, time_text};
use crate::builtin;
use crate::definition::ResourceDefinition;

#[test]
fn times_are_read_as_go_reads_them() {
    for (text, time, micro) in [
        ("2024-01-01T00:00:00Z", Some("2024-01-01T00:00:00Z"), None),
        ("2024-01-01T00:00:00.5Z", Some("2024-01-01T00:00:00Z"), None),
        ("2024-01-01T01:30:00+02:00", Some("2023-12-31T23:30:00Z"), None),
        (
            "2024-01-01T00:00:00.123456-01:00",
            Some("2024-01-01T01:00:00Z"),
            Some("2024-01-01T01:00:00.123456Z"),
        ),
        ("2024-01-01T00:00:00.123456789Z", Some("2024-01-01T00:00:00Z"), None),
        ("2024-02-30T00:00:00Z", None, None),
        ("2024-13-01T00:00:00.000000Z", None, None),
        ("2024-01-01T24:00:00.000000Z", None, None),
        ("2024-01-01t00:00:00.000000z", None, None),
        ("2024-01-01T00:00:00.000000Zx", None, None),
        ("2024-01-01", None, None),
        ("garbage", None, None),
        ("", None, None),
    ] {
        let read = |is_micro| read_time(text, is_micro).map(|read| time_text(read, is_micro));
        assert_eq!(read(false).ok().as_deref(), time, "{text}");
        assert_eq!(read(true).ok().as_deref(), micro, "{text}");
    }
}

/// Expected messages were recorded from kube-apiserver 1.35.
#[test]
fn what_go_cannot_read_is_told_in_its_words() {
    for (text, is_micro, why) in [
        (
            "garbage",
            true,
            "parsing time \"garbage\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \
             \"garbage\" as \"2006\"",
        ),
        (
            "2024-01-01T00:00:00Z",
            true,
            "parsing time \"2024-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": \
             cannot parse \"Z\" as \".000000\"",
        ),
        (
            "2024-13-01T00:00:00Z",
            false,
            "parsing time \"2024-13-01T00:00:00Z\": month out of range",
        ),
        (
            "2024-01-01T00:00:00Zx",
            false,
            "parsing time \"2024-01-01T00:00:00Zx\": extra text: \"x\"",
        ),
    ] {
        assert_eq!(read_time(text, is_micro).unwrap_err(), why);
    }
}

/// Builds an object with `value` in one field of its kind, for each field with a checked form.
fn rows(node: &Node, name: &str, wrap: &dyn Fn(Value) -> Value, found: &mut Vec<(Form, Value)>) {
    if let Some(form) = Form::of(node, name) {
        let value = match form {
            Form::Time | Form::MicroTime => json!("garbage"),
            Form::Int32 => json!(5_000_000_000_i64),
            Form::Int64 => json!(1e30),
        };
        found.push((form, wrap(value)));
    }
    for (name, below) in node.properties() {
        rows(below, name, &|value| wrap(json!({ name: value })), found);
    }
    if let Some(items) = node.items() {
        rows(items, "", &|value| wrap(json!([value])), found);
    }
}

fn every_row(check: impl Fn(&ResourceDefinition, Form, Value)) {
    let mut all = 0;
    for definition in builtin::natives() {
        let Some(schema) = &definition.schema else { continue };
        let mut found = Vec::new();
        rows(schema.root(), "", &|value| value, &mut found);
        all += found.len();
        for (form, object) in found {
            check(&definition, form, object);
        }
    }
    assert!(all >= 25, "{all}");
}

#[test]
fn every_time_and_integer_of_every_native_kind_is_checked() {
    every_row(|definition, form, mut object| {
        let told = canonical(definition, &mut object).unwrap_err();
        let begin = match form {
            Form::Time | Form::MicroTime => "parsing time \"garbage\" as",
            Form::Int32 | Form::Int64 => "json: cannot unmarshal number ",
        };
        assert!(told.starts_with(begin), "{definition:?} {object}: {told}");
    });
}

#[test]
fn every_stored_value_that_no_client_can_read_is_mended() {
    every_row(|definition, _, mut object| {
        assert!(mend(definition, &mut object), "{definition:?} {object}");
        assert_eq!(canonical(definition, &mut object), Ok(()));
        assert!(!mend(definition, &mut object));
    });
    let leases = builtin::natives().into_iter().find(|one| one.plural == "leases").unwrap();
    let renewed = |time: &str| json!({ "spec": { "renewTime": time, "holderIdentity": "a" } });
    let mut lease = renewed("2024-01-01T02:00:00+02:00");
    assert!(mend(&leases, &mut lease));
    assert_eq!(lease, renewed("2024-01-01T00:00:00.000000Z"));
}
