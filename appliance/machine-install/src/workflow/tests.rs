use api::meta::ObjectKey;
use api::tinkerbell::{BootMode, BootOptions, Hardware, Template, Workflow};
use serde_json::{Value, json};

use super::{InstallObjects, InstallRequest, is_of, key, objects, second_name};
use crate::InstallError;

fn hardware(more: &Value) -> Hardware {
    let mut object = json!({
        "metadata": { "name": "nuc1", "namespace": "rack", "uid": "0a1b" },
        "spec": { "interfaces": [
            { "dhcp": { "mac": "52:54:00:77:00:01" } },
            { "dhcp": { "mac": "52:54:00:77:00:02" } },
        ] },
    });
    for (field, value) in more.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn install(
    machine: &str,
    hardware: &Hardware,
    boot: &BootOptions,
) -> Result<InstallObjects, InstallError> {
    let machine = &ObjectKey::new("default", machine);
    let cluster_uid = Some("c1");
    let request = InstallRequest { machine, cluster_uid, hardware, boot };
    objects(&request, "version: \"0.1\"\n")
}

fn bmc() -> Value {
    json!({ "bmcRef": { "kind": "Machine", "name": "bmc1" } })
}

fn iso(url: &str) -> BootOptions {
    let boot_mode = Some(BootMode::Isoboot);
    BootOptions { boot_mode, iso_url: url.to_owned(), ..BootOptions::default() }
}

#[test]
fn both_objects_are_as_in_capt() {
    let made = install("worker-a", &hardware(&json!({})), &BootOptions::default()).unwrap();
    let metadata = json!({
        "name": "worker-a",
        "namespace": "rack",
        "labels": {
            "capt.tinkerbell.org/machine-name": "worker-a",
            "capt.tinkerbell.org/machine-namespace": "default",
            "tinbox.dev/management-cluster-uid": "c1",
        },
    });
    let template = json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Template",
        "metadata": metadata,
        "spec": { "data": "version: \"0.1\"\n" },
    });
    let workflow = json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Workflow",
        "metadata": metadata,
        "spec": {
            "templateRef": "worker-a",
            "hardwareRef": "nuc1",
            "hardwareMap": { "device_1": "52:54:00:77:00:01" },
            "bootOptions": { "toggleAllowNetboot": true },
            "retry": { "attempts": 3, "backoffSeconds": 30 },
        },
    });
    assert_eq!(made, InstallObjects { template, workflow });
    let template: Template = serde_json::from_value(made.template).unwrap();
    assert_eq!(template.spec.data.as_deref(), Some("version: \"0.1\"\n"));
    let workflow: Workflow = serde_json::from_value(made.workflow).unwrap();
    assert!(workflow.spec.boot_options.toggle_allow_netboot);
}

#[test]
fn the_labels_tell_objects_of_machines_with_one_name_apart() {
    let (machine, hardware) = (ObjectKey::new("default", "worker-a"), hardware(&json!({})));
    assert_eq!(key(&machine, &hardware), ObjectKey::new("rack", "worker-a"));
    let made = install("worker-a", &hardware, &BootOptions::default()).unwrap();
    let made: Workflow = serde_json::from_value(made.workflow).unwrap();
    let other = ObjectKey::new("staging", "worker-a");
    assert!(is_of(&made.metadata, &machine, Some("c1")));
    assert!(!is_of(&made.metadata, &machine, None));
    assert!(!is_of(&made.metadata, &machine, Some("c2")));
    assert!(!is_of(&made.metadata, &other, Some("c1")));
}

#[test]
fn a_second_name_differs_by_machine_namespace_and_cluster() {
    let name =
        |uid, namespace: &str, name: &str| second_name(&ObjectKey::new(namespace, name), uid);
    // The names of running installations must never change.
    assert_eq!(name(Some("c1"), "default", "worker-a"), "worker-a-70bd5cb99e3f2d58");
    let long = "a".repeat(45) + "-.b";
    let mut names = vec![
        name(Some("c1"), "default", "worker-a"),
        name(Some("c2"), "default", "worker-a"),
        name(Some("c1"), "staging", "worker-a"),
        name(None, "default", "worker-a"),
        name(None, "default", &long),
        name(None, "default", &(long.clone() + "c")),
    ];
    assert_eq!(names[4].split('-').next(), Some(&*"a".repeat(45)));
    assert!(names.iter().all(|name| name.len() <= 63), "{names:?}");
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 6, "{names:?}");
    // The recorded name takes precedence.
    let mut hardware = hardware(&json!({}));
    let recorded = ("tinbox.dev/installation-name".to_owned(), "worker-a-0".to_owned());
    hardware.metadata.annotations.extend([recorded]);
    let machine = ObjectKey::new("default", "worker-a");
    assert_eq!(key(&machine, &hardware), ObjectKey::new("rack", "worker-a-0"));
}

#[test]
fn the_worker_is_the_agent_of_the_machine() {
    let with_id = hardware(&json!({ "agentID": "rack1-nuc7" }));
    let made = install("a", &with_id, &BootOptions::default()).unwrap();
    assert_eq!(made.workflow["spec"]["hardwareMap"]["device_1"], "rack1-nuc7");
    let bare = hardware(&json!({ "interfaces": [] }));
    let error = install("a", &bare, &BootOptions::default()).unwrap_err();
    assert_eq!(error.reason(), "HardwareIncomplete");
    let missing = "Hardware rack/nuc1: spec.interfaces[0].dhcp.mac is missing";
    assert_eq!(error.to_string(), missing);
}

#[test]
fn boot_modes_need_a_bmc() {
    let boot = BootOptions { boot_mode: Some(BootMode::Netboot), iso_url: "x".into(), ..iso("") };
    let options = |hardware: &Hardware, boot: &BootOptions| {
        install("a", hardware, boot).unwrap().workflow["spec"]["bootOptions"].clone()
    };
    let only_toggle = json!({ "toggleAllowNetboot": true });
    assert_eq!(options(&hardware(&json!({})), &boot), only_toggle);
    assert_eq!(options(&hardware(&bmc()), &BootOptions::default()), only_toggle);
    let netboot = json!({ "toggleAllowNetboot": true, "bootMode": "netboot" });
    assert_eq!(options(&hardware(&bmc()), &boot), netboot);
    let custom = json!({
        "bootMode": "customboot",
        "custombootConfig": { "preparingActions": [{ "powerAction": "off" }], "postActions": [] },
    });
    let custom_boot: BootOptions = serde_json::from_value(custom.clone()).unwrap();
    let made = options(&hardware(&bmc()), &custom_boot);
    assert_eq!(made["custombootConfig"], custom["custombootConfig"]);
}

#[test]
fn an_iso_url_names_the_machine() {
    let instance = |id: &str| {
        let mut more = bmc();
        more["metadata"] = json!({ "instance": { "id": id } });
        hardware(&more)
    };
    let made = |hardware: &Hardware, url: &str| {
        let made = install("a", hardware, &iso(url));
        made.map(|made| made.workflow["spec"]["bootOptions"]["isoURL"].clone())
    };
    let mac = instance("52:54:00:77:00:01");
    for (url, wanted) in [
        ("http://box/hook.iso", "http://box/52-54-00-77-00-01/hook.iso"),
        (
            "http://box:7080/iso/hook.iso?a=/b",
            "http://box:7080/iso/52-54-00-77-00-01/hook.iso?a=/b",
        ),
    ] {
        assert_eq!(made(&mac, url).unwrap(), wanted);
    }
    assert_eq!(made(&instance(""), "http://box/a.iso").unwrap(), "http://box/0a1b/a.iso");
    for (url, shown) in [
        ("", ""),
        ("hook.iso", "hook.iso"),
        ("http://box?k=secret", "http://box"),
        ("http://box/iso/", "http://box/iso/"),
    ] {
        let error = made(&mac, url).unwrap_err();
        assert_eq!(error.reason(), "BootOptionsInvalid");
        let why = format!("boot mode isoboot needs bootOptions.isoURL, found {shown:?}");
        assert_eq!(error.to_string(), why);
    }
}

#[test]
fn names_are_valid_labels() {
    for name in ["", "a".repeat(64).as_str(), "-a", "a-", "a b"] {
        let error = install(name, &hardware(&json!({})), &BootOptions::default()).unwrap_err();
        assert_eq!(error.reason(), "NameInvalid", "{name}");
    }
    install(&"a".repeat(63), &hardware(&json!({})), &BootOptions::default()).unwrap();
}
