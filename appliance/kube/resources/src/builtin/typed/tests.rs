//! Tests of the messages about fields of a wrong type, kind by kind.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{MAX_MISTAKES, MAX_PARTS};
use crate::builtin::registry;
use schema::{FieldError, Mistake};

fn errors(kind: &str, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let registry = registry().unwrap();
    let definition = registry.all().iter();
    let definition = definition.filter(|one| one.kind == kind).find(|one| one.validate.is_some());
    let definition = definition.unwrap();
    definition.validate.as_ref().unwrap()(object, old)
}

fn interface(interface: Value) -> Value {
    json!({ "spec": { "interfaces": [{}, interface] } })
}

fn connected(rest: Value) -> Value {
    let mut spec = rest;
    spec["connection"]["host"] = json!("10.0.0.2");
    json!({ "spec": spec })
}

fn job(task: Value) -> Value {
    let machine = json!({ "name": "a", "namespace": "b" });
    json!({ "spec": { "machineRef": machine, "tasks": [task] } })
}

#[track_caller]
fn check(wrong: &[(&str, Value, &str)]) {
    for (kind, object, expected) in wrong {
        let told: Vec<String> =
            errors(kind, object, None).iter().map(FieldError::to_string).collect();
        assert_eq!(told, [*expected], "{object}");
    }
}

#[test]
fn hardware_of_the_wrong_type_is_told_by_its_field() {
    check(&[
        (
            "Hardware",
            interface(json!({ "dhcp": { "lease_time": "3600" } })),
            "spec.interfaces[1].dhcp.lease_time: Invalid value: \"3600\": must be an integer",
        ),
        (
            "Hardware",
            interface(json!({ "netboot": { "allowPXE": "true" } })),
            "spec.interfaces[1].netboot.allowPXE: Invalid value: \"true\": must be a boolean",
        ),
        (
            "Hardware",
            interface(json!({ "dhcp": { "name_servers": "1.1.1.1" } })),
            "spec.interfaces[1].dhcp.name_servers: Invalid value: \"1.1.1.1\": must be an array",
        ),
        (
            "Hardware",
            interface(json!({ "dhcp": { "name_servers": ["1.1.1.1", null] } })),
            "spec.interfaces[1].dhcp.name_servers[1]: Invalid value: null: must be a string",
        ),
        // Fields below a node that preserves unknown fields.
        (
            "Hardware",
            json!({ "spec": { "metadata": { "instance": { "x": 1, "tags": ["a", 1] } } } }),
            "spec.metadata.instance.tags[1]: Invalid value: 1: must be a string",
        ),
        // The message must not repeat a value that may be private.
        (
            "Hardware",
            json!({ "spec": { "userData": { "password": "hunter2" } } }),
            "spec.userData: Invalid value: \"an object\": must be a string",
        ),
        ("Hardware", json!({ "spec": 1 }), "spec: Invalid value: 1: must be an object"),
        // Serde reads a list as the fields of a struct, in order.
        (
            "Hardware",
            interface(json!({ "netboot": [true] })),
            "spec.interfaces[1].netboot: Invalid value: \"an array\": must be an object",
        ),
    ]);
}

#[test]
fn workflows_of_the_wrong_type_are_told_by_their_field() {
    check(&[
        (
            "Template",
            json!({ "spec": { "data": 1 } }),
            "spec.data: Invalid value: 1: must be a string",
        ),
        (
            "Workflow",
            json!({ "spec": { "disabled": "true" } }),
            "spec.disabled: Invalid value: \"true\": must be a boolean",
        ),
        (
            "Workflow",
            json!({ "spec": { "bootOptions": { "bootMode": "" } } }),
            "spec.bootOptions.bootMode: Invalid value: \"\": must be one of `netboot`, `iso`, \
             `isoboot`, `customboot`",
        ),
        (
            "Workflow",
            json!({ "metadata": { "ownerReferences": [{ "controller": "true" }] } }),
            "metadata.ownerReferences[0].controller: Invalid value: \"true\": must be a boolean",
        ),
        ("Workflow", json!({ "spec": [] }), "spec: Invalid value: \"an array\": must be an object"),
    ]);
}

#[test]
fn bmc_objects_of_the_wrong_type_are_told_by_their_field() {
    check(&[
        (
            "Machine",
            connected(json!({ "connection": { "insecureTLS": "no" } })),
            "spec.connection.insecureTLS: Invalid value: \"no\": must be a boolean",
        ),
        (
            "Machine",
            connected(
                json!({ "connection": { "providerOptions": { "ipmitool": { "port": -1 } } }}),
            ),
            "spec.connection.providerOptions.ipmitool.port: Invalid value: -1: must be an integer \
             from 0 to 65535",
        ),
        (
            "Job",
            job(json!({ "bootDevice": { "device": "pxe", "persistent": 1 } })),
            "spec.tasks[0].bootDevice.persistent: Invalid value: 1: must be a boolean",
        ),
        (
            "Job",
            job(json!({ "bootDevice": { "persistent": true } })),
            "spec.tasks[0].bootDevice.device: Required value: must be given",
        ),
        (
            "Job",
            job(json!({ "bootDevice": { "efiBoot": true, "persistent": 1 } })),
            "spec.tasks[0].bootDevice.persistent: Invalid value: 1: must be a boolean",
        ),
        (
            "Job",
            job(json!({ "bootDevice": {} })),
            "spec.tasks[0].bootDevice.device: Required value: must be given",
        ),
        (
            "Task",
            connected(json!({ "task": { "oneTimeBootDeviceAction": { "efiBoot": "yes" } } })),
            "spec.task.oneTimeBootDeviceAction.efiBoot: Invalid value: \"yes\": must be a boolean",
        ),
    ]);
}

#[test]
fn all_is_told_at_once_and_once() {
    let object = json!({ "spec": {
        "templateRef": 1, "disabled": "no", "hardwareMap": { "a": 1 },
        "bootOptions": { "bootMode": "usb", "toggleAllowNetboot": 1 },
    } });
    let mut fields = BTreeMap::new();
    for error in errors("Workflow", &object, None) {
        *fields.entry(error.field).or_insert(0) += 1;
    }
    let expected = [
        "spec.bootOptions.bootMode",
        "spec.bootOptions.toggleAllowNetboot",
        "spec.disabled",
        "spec.hardwareMap.a",
        "spec.templateRef",
    ];
    assert_eq!(fields.into_iter().collect::<Vec<_>>(), expected.map(|it| (it.to_owned(), 1)));
}

#[test]
fn many_mistakes_are_cut_short() {
    let disks = |count: usize| json!({ "spec": { "disks": vec![json!({ "device": 1 }); count] } });
    assert_eq!(errors("Hardware", &disks(MAX_PARTS), None).len(), MAX_MISTAKES);
    let whole = errors("Hardware", &disks(MAX_PARTS + 1), None);
    assert_eq!(whole.iter().map(|it| it.field.as_str()).collect::<Vec<_>>(), ["spec.disks"]);
    let lists = json!({ "spec": { "disks": vec![json!([]); MAX_PARTS] } });
    assert_eq!(errors("Hardware", &lists, None).len(), MAX_MISTAKES);
}

#[test]
fn null_is_left_out_and_the_unknown_is_kept() {
    let mut object = json!({
        "spec": {
            "interfaces": [{ "dhcp": { "hostname": null, "ip": null, "name_servers": null,
                "new_field": { "a": [1] } } }],
            "disks": null, "newer": { "x": "y" },
        },
        "status": null,
    });
    stdx::json::drop_nulls(&mut object);
    let kept = json!({ "spec": {
        "interfaces": [{ "dhcp": { "new_field": { "a": [1] } } }], "newer": { "x": "y" },
    } });
    assert_eq!(object, kept);
    assert_eq!(errors("Hardware", &object, None), []);
    for mut nothing in [json!({ "spec": null }), json!({})] {
        stdx::json::drop_nulls(&mut nothing);
        assert_eq!(nothing, json!({}));
        assert_eq!(errors("Hardware", &nothing, None), []);
    }
    let status = json!({ "spec": {}, "status": { "tasks": "theirs" } });
    assert_eq!(errors("Workflow", &status, None), []);
}

#[test]
fn what_was_wrong_before_does_not_hold_an_object_back() {
    let old = interface(json!({ "dhcp": { "lease_time": "3600" } }));
    assert_eq!(errors("Hardware", &old, Some(&old)), []);
    let mut worse = old.clone();
    worse["spec"]["userData"] = json!(1);
    let told = errors("Hardware", &worse, Some(&old));
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].mistake, told[0].field.as_str()), (Mistake::Invalid, "spec.userData"));
}
