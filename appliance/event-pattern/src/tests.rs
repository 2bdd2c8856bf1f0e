//! Patterns for hardware facts that an agent reports.

use serde_json::{Value, json};

use crate::{Error, Event, FIELDS_MAX, LEAVES_MAX, PATTERN_BYTES, Pattern};

fn fits(pattern: &Value, document: &Value) -> bool {
    let event = Event::new(document).unwrap();
    Pattern::parse(&pattern.to_string()).unwrap().fits(&event).unwrap()
}

fn machine() -> Value {
    json!({
        "cpu": { "totalCores": 4, "processors": [{ "vendor": "GenuineIntel" }] },
        "blockDevices": [
            { "name": "sda", "driveType": "SSD", "size": "500GB" },
            { "name": "sdb", "driveType": "HDD", "size": "4TB" },
        ],
        "networkInterfaces": [{ "mac": "52:54:00:77:00:01", "enabledCapabilities": ["a", "tso"] }],
        "product": { "name": "NUC11TNHi5" },
        "empty": [],
        "odd": null,
    })
}

#[test]
fn every_kind_of_value() {
    for (pattern, fitting) in [
        (json!({ "cpu": { "totalCores": [4] } }), true),
        (json!({ "cpu": { "totalCores": [2, 4.0] } }), true),
        (json!({ "cpu": { "totalCores": ["4"] } }), false),
        (json!({ "odd": [null] }), true),
        (json!({ "odd": [false] }), false),
        (json!({ "product": { "name": [{ "prefix": "NUC1" }] } }), true),
        (json!({ "product": { "name": [{ "prefix": "nuc" }] } }), false),
        (json!({ "product": { "name": [{ "equals-ignore-case": "nuc11tnhI5" }] } }), true),
        (json!({ "product": { "name": [{ "equals-ignore-case": "nuc11" }] } }), false),
        (json!({ "product": { "name": [{ "anything-but": ["NUC"] }] } }), true),
        (json!({ "cpu": { "totalCores": [{ "anything-but": ["4"] }] } }), true),
        (json!({ "product": { "name": [{ "wildcard": "NUC*TN*i5" }] } }), true),
        (json!({ "product": { "name": [{ "wildcard": "NUC\\*" }] } }), false),
        (json!({ "product": { "name": [{ "shellstyle": "*i5" }] } }), true),
        (json!({ "product": { "name": [{ "shellstyle": "NUC*X" }, "NUC11TNHi5"] } }), true),
        (json!({ "product": { "name": [{ "regexp": "NUC(11|12)TNH[a-i][0-9]" }] } }), true),
        (json!({ "product": { "name": [{ "regexp": "NUC" }] } }), false),
        (json!({ "product": { "name": [{ "regexp": "N.{3,9}+|" }] } }), false),
        (json!({ "networkInterfaces": { "mac": [{ "exists": true }] } }), true),
        (json!({ "networkInterfaces": { "vendor": [{ "exists": false }] } }), true),
        (json!({ "networkInterfaces": [{ "exists": true }] }), false),
        (json!({ "empty": [{ "exists": false }] }), true),
        (json!({ "networkInterfaces": { "enabledCapabilities": ["tso"] } }), true),
        (json!({}), false),
        (json!({ "cpu": [] }), false),
    ] {
        let text = pattern.to_string();
        if text.contains("}+|") {
            assert!(Pattern::parse(&text).is_err(), "{text}");
            continue;
        }
        assert_eq!(fits(&pattern, &machine()), fitting, "{text}");
    }
}

#[test]
fn fields_below_one_array_fit_in_one_element() {
    let disk = |kind: &str, size: &str| json!({ "driveType": [kind], "size": [size] });
    assert!(fits(&json!({ "blockDevices": disk("SSD", "500GB") }), &machine()));
    assert!(fits(&json!({ "blockDevices": disk("HDD", "4TB") }), &machine()));
    assert!(!fits(&json!({ "blockDevices": disk("SSD", "4TB") }), &machine()));
    let both = json!({ "blockDevices": disk("HDD", "4TB"), "cpu": { "totalCores": [4] } });
    assert!(fits(&both, &machine()));
}

#[test]
fn what_is_not_understood_is_refused_in_a_sentence() {
    for (text, part) in [
        ("", "not a JSON object"),
        ("[]", "it is an array"),
        ("{\"a\": 1}", "such as [\"…\"], found a number"),
        ("{\"a\": {\"b\": \"x\"}}", "found a string"),
        ("{\"a\": [[1]]}", "array within an array"),
        ("{\"a\": [{}]}", "0 members"),
        ("{\"a\": [{\"suffix\": \"x\"}]}", "is not a known kind of pattern"),
        ("{\"a\": [{\"prefix\": 1}]}", "prefix expects a string"),
        ("{\"a\": [{\"exists\": 1}]}", "exists expects true or false"),
        ("{\"a\": [{\"exists\": true}, \"x\"]}", "cannot be combined with"),
        ("{\"a\": [{\"anything-but\": []}]}", "not empty"),
        ("{\"a\": [{\"wildcard\": \"a**\"}]}", "without **"),
        ("{\"a\": [{\"wildcard\": \"a\\\\n\"}]}", "with \\ only before"),
        ("{\"a\": [{\"regexp\": \"(a\"}]}", "( without its )"),
        ("{\"a\": [{\"regexp\": \"a)\"}]}", ") without its ("),
        ("{\"a\": [{\"regexp\": \"a{5,2}\"}]}", "not in ascending order"),
        ("{\"a\": [{\"regexp\": \"[\"}]}", "[ without its ]"),
        ("{\"a\": [{\"regexp\": \"~w\"}]}", "not a valid escape"),
        ("{\"a\": [{\"regexp\": \"(((a{99}){99}){99}){99}\"}]}", "larger than"),
    ] {
        let error = Pattern::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn everything_has_its_limit() {
    let long = format!("{{\"a\": [\"{}\"]}}", "x".repeat(PATTERN_BYTES));
    assert_eq!(Pattern::parse(&long).unwrap_err(), Error::Long);
    let fields: Vec<String> = (0..=FIELDS_MAX).map(|at| format!("\"{at}\": [1]")).collect();
    let many = Pattern::parse(&format!("{{{}}}", fields.join(","))).unwrap_err();
    assert_eq!(many, Error::Many(FIELDS_MAX, "fields"));
    let deep = format!("{}{}", "{\"a\":".repeat(2000), "}".repeat(2000));
    assert!(matches!(Pattern::parse(&deep).unwrap_err(), Error::Json(_)));
    let numbers: Vec<usize> = (0..=LEAVES_MAX).collect();
    assert_eq!(Event::new(&json!({ "a": numbers })).unwrap_err(), Error::Large);
    // Each leaf fits, and each is a way to go on.
    let event = Event::new(&json!({ "a": vec![1; 8000] })).unwrap();
    let pattern = Pattern::parse(&format!("{{{}}}", ["\"a\": [1]"; 3].join(","))).unwrap();
    assert_eq!(pattern.fits(&event).unwrap_err(), Error::Costly);
}
