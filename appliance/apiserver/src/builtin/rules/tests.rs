//! One good and several bad objects of each kind.

use super::{
    event, hardware, job, machine, prepare_namespace, prepare_secret, secret, task, template,
    workflow,
};
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
