//! Tests of the actions that a rule allows, and of the comparison of rules.

use serde_json::{Value, json};

use super::{PolicyRule, covers, full_authority};
use crate::Action;

fn rule(value: Value) -> PolicyRule {
    serde_json::from_value(value).unwrap()
}

fn on(verb: &str, resource: &str, name: &str) -> Action {
    Action::on(verb, "g", resource, "n", name)
}

#[test]
fn what_a_rule_allows() {
    let all = json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] });
    let one = json!({ "verbs": ["get"], "apiGroups": ["g"], "resources": ["a"] });
    let part = json!({ "verbs": ["get"], "apiGroups": ["g"], "resources": ["a/status"] });
    let any_part = json!({ "verbs": ["get"], "apiGroups": ["g"], "resources": ["*/status"] });
    let named = json!({
        "verbs": ["get", "list"], "apiGroups": ["g"], "resources": ["a"], "resourceNames": ["x"]
    });
    let null = json!({ "verbs": ["get"], "apiGroups": ["g"], "resources": ["a"],
        "resourceNames": null });
    for (rule_value, action, expected) in [
        (&all, on("get", "a", ""), true),
        (&all, on("", "a/b", "x"), true),
        (&all, Action::on_path("get", "/x"), false),
        (&one, on("get", "a", "x"), true),
        (&one, on("list", "a", ""), false),
        (&one, on("get", "a/status", "x"), false),
        (&one, Action::on("get", "", "a", "n", "x"), false),
        (&part, on("get", "a/status", "x"), true),
        (&part, on("get", "a", "x"), false),
        (&part, on("get", "b/status", "x"), false),
        (&any_part, on("get", "b/status", "x"), true),
        (&any_part, on("get", "b/xstatus", "x"), false),
        (&any_part, on("get", "b", "x"), false),
        (&named, on("get", "a", "x"), true),
        (&named, on("get", "a", "y"), false),
        (&named, on("list", "a", ""), false),
        (&null, on("get", "a", "y"), true),
    ] {
        assert_eq!(rule(rule_value.clone()).allows(&action), expected, "{rule_value} {action:?}");
    }
}

#[test]
fn paths() {
    let paths = rule(json!({ "verbs": ["get"], "nonResourceURLs": ["/api/*", "/version"] }));
    for (path, expected) in
        [("/api/v1", true), ("/api/", true), ("/api", false), ("/version", true), ("/v", false)]
    {
        assert_eq!(paths.allows(&Action::on_path("get", path)), expected, "{path}");
    }
    assert!(!paths.allows(&Action::on_path("post", "/version")));
    assert!(!paths.allows(&on("get", "a", "x")));
}

#[test]
fn covering() {
    let owned = [
        rule(json!({ "verbs": ["get", "list"], "apiGroups": ["g"], "resources": ["a", "*/s"] })),
        rule(json!({ "verbs": ["*"], "apiGroups": ["h"], "resources": ["*"] })),
        rule(json!({ "verbs": ["get"], "nonResourceURLs": ["/x/*"] })),
        rule(json!({ "verbs": ["get"], "apiGroups": ["n"], "resources": ["a"],
            "resourceNames": ["x"] })),
    ];
    for (wanted, expected) in [
        (json!({ "verbs": ["get"], "apiGroups": ["g"], "resources": ["a"] }), None),
        (json!({ "verbs": ["get"], "apiGroups": ["g"], "resources": ["b/s"] }), None),
        (json!({ "verbs": ["x", "*"], "apiGroups": ["h"], "resources": ["b/s", "*"] }), None),
        (json!({ "verbs": ["get"], "nonResourceURLs": ["/x/y", "/x/*"] }), None),
        (
            json!({ "verbs": ["get", "create", "patch"], "apiGroups": ["g"], "resources": ["a"] }),
            Some("{APIGroups:[\"g\"], Resources:[\"a\"], Verbs:[\"create\" \"patch\"]}"),
        ),
        (
            json!({ "verbs": ["*"], "apiGroups": ["g"], "resources": ["a"] }),
            Some("{APIGroups:[\"g\"], Resources:[\"a\"], Verbs:[\"*\"]}"),
        ),
        (
            json!({ "verbs": ["get"], "apiGroups": ["n"], "resources": ["a"] }),
            Some("{APIGroups:[\"n\"], Resources:[\"a\"], Verbs:[\"get\"]}"),
        ),
        (
            json!({ "verbs": ["get"], "nonResourceURLs": ["/x", "/*"] }),
            Some(
                "{NonResourceURLs:[\"/*\"], Verbs:[\"get\"]}\n\
                 {NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}",
            ),
        ),
    ] {
        let found = covers(&owned, &[rule(wanted.clone())]);
        assert_eq!(found.err().as_deref(), expected, "{wanted}");
    }
    let many: Vec<String> = (0..200).map(|at| at.to_string()).collect();
    let huge = rule(json!({ "verbs": many, "apiGroups": many, "resources": ["a"] }));
    assert!(covers(&full_authority(), &[huge]).is_err());
}

#[test]
fn a_comparison_has_an_end() {
    let words = |count: usize| (0..count).map(|at| format!("w{at}/x")).collect::<Vec<_>>();
    let one = |resources: Vec<String>| PolicyRule {
        verbs: vec!["get".to_owned()],
        api_groups: vec!["g".to_owned()],
        resources,
        ..PolicyRule::default()
    };
    let (held, wanted) = (vec![one(words(4000))], [one(words(6000))]);
    let why = covers(&held, &wanted).unwrap_err();
    assert!(why.starts_with("6000 permissions in one role are too many to compare"), "{why}");
    let wanted = [one(words(4000))];
    assert_eq!(covers(&held, &wanted), Ok(()));
}
