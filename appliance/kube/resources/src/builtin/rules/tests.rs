//! Tests of the rules with one valid and several invalid objects of each kind.

use super::{
    config_map, event, lease, prepare_namespace, prepare_secret, rule_set, secret, workflow,
};
use schema::Mistake;
use serde_json::{Value, json};

type Rule = fn(&Value, Option<&Value>) -> super::Errors;

fn fields(rule: Rule, object: &Value) -> Vec<String> {
    rule(object, None).into_iter().map(|error| error.field).collect()
}

#[test]
fn events_lie_where_what_they_are_about_does() {
    let about = |namespace: &str, other: &str| {
        let involved = json!({ "namespace": other });
        json!({ "metadata": { "namespace": namespace }, "involvedObject": involved })
    };
    assert_eq!(fields(event, &about("a", "b")), ["involvedObject.namespace"]);
    assert_eq!(fields(event, &about("a", "a")), [""; 0]);
    assert_eq!(fields(event, &about("default", "")), [""; 0]);
}

#[test]
fn leases_last() {
    let spec = |seconds: i64, count: i64| {
        let spec = json!({ "leaseDurationSeconds": seconds, "leaseTransitions": count });
        json!({ "spec": spec })
    };
    assert_eq!(fields(lease, &spec(15, 0)), [""; 0]);
    let both = ["spec.leaseDurationSeconds", "spec.leaseTransitions"];
    assert_eq!(fields(lease, &spec(0, -1)), both);
    assert_eq!(fields(lease, &json!({})), [""; 0]);
}

#[test]
fn config_maps_have_keys_that_are_file_names() {
    let good = json!({ "data": { "a.b": "1", "..x": "2" }, "binaryData": { "a.b": "QQ==" } });
    assert_eq!(fields(config_map, &good), ["data[..x]", "data[a.b]"]);
    let big = json!({ "data": { "a": "x".repeat(1024 * 1024 + 1) } });
    assert_eq!(fields(config_map, &big).len(), 1);
    let frozen = json!({ "data": { "a": "1" }, "immutable": true });
    let changed = json!({ "data": { "a": "2" } });
    let told: Vec<_> = config_map(&changed, Some(&frozen)).into_iter().map(|e| e.field).collect();
    assert_eq!(told, ["immutable", "data"]);
    assert_eq!(config_map(&frozen, Some(&frozen)), []);
}

#[test]
fn rules_are_patterns_that_can_be_used() {
    let set = |rules: &[&str]| json!({ "spec": { "rules": rules } });
    let good = r#"{"product": {"name": [{"prefix": "NUC"}]}}"#;
    let unknown = r#"{"product": {"name": [{"begins": "NUC"}]}}"#;
    assert_eq!(rule_set(&set(&[good, ""]), None).len(), 1);
    assert_eq!(rule_set(&json!({}), None), []);
    let told = rule_set(&set(&[good, unknown, "{", r#"{"a": [{"regexp": "("}]}"#]), None);
    assert_eq!(fields_of(&told), ["spec.rules[1]", "spec.rules[2]", "spec.rules[3]"]);
    assert!(format!("{:?}", told[0]).contains("begins"), "{told:?}");
    // A rule set stored before this rule existed must be able to lose its finalizers.
    assert_eq!(rule_set(&set(&[good, unknown]), Some(&set(&[unknown]))), []);
    let many = vec![good; api::tinkerbell::RULES_MAX + 1];
    assert_eq!(fields_of(&rule_set(&set(&many), None)), ["spec.rules"]);
    assert_eq!(rule_set(&set(&many), Some(&set(&many))), []);
}

fn fields_of(errors: &[schema::FieldError]) -> Vec<&str> {
    errors.iter().map(|error| error.field.as_str()).collect()
}

#[test]
fn a_workflow_that_has_begun_keeps_what_it_is_made_of() {
    let spec = json!({
        "hardwareRef": "nuc-1", "templateRef": "install", "hardwareMap": { "device_1": "a" },
        "bootOptions": { "bootMode": "netboot" },
    });
    let run = |state: Value, spec: &Value| json!({ "spec": spec, "status": { "state": state } });
    let with = |field: &str, value: Value| {
        let mut spec = spec.clone();
        spec[field] = value;
        spec
    };
    for (field, value) in [
        ("hardwareRef", json!("nuc-2")),
        ("templateRef", json!("erase")),
        ("hardwareMap", json!({ "device_1": "b" })),
        ("bootOptions", json!({})),
    ] {
        let changed = with(field, value);
        for state in ["PREPARING", "RUNNING", "SUCCESS", "FAILED"] {
            let errors = workflow(&run(json!(state), &changed), Some(&run(json!(state), &spec)));
            assert_eq!(errors.len(), 1, "{field} {state}");
            for error in errors {
                assert_eq!(error.field, format!("spec.{field}"));
                assert_eq!(error.mistake, Mistake::Forbidden);
                assert!(error.detail.contains("immutable once the workflow has begun"));
            }
        }
        for state in [Value::Null, json!("")] {
            let errors = workflow(&run(state.clone(), &changed), Some(&run(state, &spec)));
            assert_eq!(errors, [], "{field} may change before the run");
        }
    }
    let old = run(json!("RUNNING"), &spec);
    assert_eq!(workflow(&run(json!("RUNNING"), &with("disabled", json!(true))), Some(&old)), []);
    // An omitted field equals an empty field.
    let empty = json!({ "hardwareRef": "", "hardwareMap": {}, "bootOptions": { "isoURL": "" } });
    let (bare, full) = (run(json!("RUNNING"), &json!({})), run(json!("RUNNING"), &empty));
    assert_eq!(workflow(&full, Some(&bare)), []);
    assert_eq!(workflow(&json!({}), Some(&old)).len(), 4);
}

#[test]
fn names_of_workflows_leave_room_for_those_of_their_jobs() {
    let named = |length: usize| json!({ "metadata": { "name": "a".repeat(length) } });
    assert_eq!(fields(workflow, &named(200)), [""; 0]);
    assert_eq!(fields(workflow, &named(201)), ["metadata.name"]);
    // A stored workflow with a long name can still be written and deleted.
    assert_eq!(workflow(&named(201), Some(&named(201))), []);
}

#[test]
fn secrets_are_encoded_and_never_quoted() {
    let mut object = json!({ "data": { "a": "QQ==" }, "stringData": { "user": "admin" } });
    prepare_secret(&mut object);
    assert_eq!(object, json!({ "data": { "a": "QQ==", "user": "YWRtaW4=" }, "type": "Opaque" }));
    assert!(secret(&object, None).is_empty());
    let bad = json!({ "data": { "pass": "hunter2!", "b/d": "QQ==" }, "type": "Opaque" });
    let errors = secret(&bad, None);
    assert_eq!(errors.len(), 2);
    assert!(errors.iter().all(|error| !error.to_string().contains("hunter2")));
    let frozen = json!({ "data": { "a": "QQ==" }, "type": "Opaque", "immutable": true });
    let changed = json!({ "data": { "a": "QUE=" }, "type": "Opaque", "immutable": true });
    assert_eq!(secret(&changed, Some(&frozen)).len(), 1);
    assert!(secret(&frozen, Some(&frozen)).is_empty());
}

#[test]
fn namespaces_carry_name_and_phase() {
    let mut object = json!({ "metadata": { "name": "rack" } });
    prepare_namespace(&mut object);
    assert_eq!(object["metadata"]["labels"], json!({ "kubernetes.io/metadata.name": "rack" }));
    assert_eq!(object["status"]["phase"], "Active");
}
