//! One good and several bad objects of each kind.

use super::{
    event, hardware, job, machine, prepare_namespace, prepare_secret, secret, task, template,
    workflow,
};
use crate::field_error::Mistake;
use serde_json::{Value, json};

type Rule = fn(&Value, Option<&Value>) -> super::Errors;

fn fields(rule: Rule, object: &Value) -> Vec<String> {
    rule(object, None).into_iter().map(|error| error.field).collect()
}

fn check(rules: &[(Rule, Value, &[&str])]) {
    for (rule, object, expected) in rules {
        assert_eq!(fields(*rule, object), *expected, "{object}");
    }
}

#[test]
fn hardware_refuses_what_upstream_refuses() {
    let interface = |dhcp: Value| json!({ "spec": { "interfaces": [{ "dhcp": dhcp }] } });
    check(&[
        (hardware, interface(json!({ "mac": null, "vlan_id": null, "boot_file_name": null })), &[]),
        (hardware, json!({}), &[]),
        (hardware, interface(json!({ "mac": "52:54:00:12:34:56", "vlan_id": "4096" })), &[]),
        (
            hardware,
            interface(json!({ "mac": "52:54:00:12:34:5G" })),
            &["spec.interfaces[0].dhcp.mac"],
        ),
        (
            hardware,
            interface(json!({ "mac": "52-54-00-12-34-56" })),
            &["spec.interfaces[0].dhcp.mac"],
        ),
        (hardware, interface(json!({ "vlan_id": "4097" })), &["spec.interfaces[0].dhcp.vlan_id"]),
        (
            hardware,
            interface(json!({ "boot_file_name": "x" })),
            &["spec.interfaces[0].dhcp.boot_file_name"],
        ),
        (hardware, json!({ "spec": { "interfaces": {} } }), &["spec.interfaces"]),
        (hardware, json!({ "status": { "state": "Fine" } }), &["status.state"]),
    ]);
}

#[test]
fn kinds_refuse_what_upstream_refuses() {
    let connection = json!({ "host": "10.0.0.2", "port": 623 });
    check(&[
        (template, json!({ "spec": { "data": "version: 1" } }), &[]),
        (template, json!({ "spec": { "data": {} } }), &["spec.data"]),
        (workflow, json!({ "spec": { "bootOptions": { "bootMode": "netboot" } } }), &[]),
        (
            workflow,
            json!({ "spec": { "bootOptions": { "bootMode": "usb" } } }),
            &["spec.bootOptions.bootMode"],
        ),
        (
            workflow,
            json!({ "spec": { "templateRef": 1, "hardwareMap": { "a": 1 } } }),
            &["spec.templateRef", "spec.hardwareMap"],
        ),
        (machine, json!({ "spec": { "connection": connection } }), &[]),
        (machine, json!({ "spec": {} }), &["spec.connection.host"]),
        (
            job,
            json!({ "spec": { "machineRef": { "name": "a", "namespace": "b" },
            "tasks": [{ "powerAction": "off" }] } }),
            &[],
        ),
        (
            job,
            json!({ "spec": { "machineRef": { "name": "a", "namespace": "b" }, "tasks": [] } }),
            &["spec.tasks"],
        ),
        (
            job,
            json!({ "spec": { "machineRef": { "name": "a", "namespace": "b" },
            "tasks": [{ "powerAction": "explode" }, {}] } }),
            &["spec.tasks[0].powerAction", "spec.tasks[1]"],
        ),
        (
            task,
            json!({ "spec": { "task": { "bootDevice": { "device": "pxe" } },
            "connection": connection } }),
            &[],
        ),
        (
            task,
            json!({ "spec": { "task": { "oneTimeBootDeviceAction": { "device": ["moon"] } },
            "connection": connection } }),
            &["spec.task.oneTimeBootDeviceAction.device[0]"],
        ),
        (
            event,
            json!({ "metadata": { "namespace": "a" }, "involvedObject": { "namespace": "b" } }),
            &["involvedObject.namespace"],
        ),
    ]);
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
    // A field that is left out and one that is empty say the same.
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
    // One that is there already can still be written and deleted.
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
