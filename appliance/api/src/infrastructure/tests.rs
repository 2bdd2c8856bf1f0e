//! Tests of the types against objects of CAPT and of Cluster API, and of the definitions.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::cluster_api::{Cluster, Machine};
use super::*;

fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

#[test]
fn a_machine_of_capt_is_read() {
    let machine: TinkerbellMachine = read(json!({
        "metadata": { "name": "m", "namespace": "default" },
        "spec": {
            "imageLookupOSDistro": "ubuntu", "imageLookupOSVersion": "2204",
            "templateOverride": "version: 0.1",
            "hardwareAffinity": {
                "required": [{ "labelSelector": { "matchLabels": { "type": "cp" } } }],
                "preferred": [{ "weight": 50, "hardwareAffinityTerm": { "labelSelector": {
                    "matchExpressions": [{ "key": "ssd", "operator": "Exists" }] } } }],
            },
            "bootOptions": { "bootMode": "iso", "isoURL": "http://x/hook.iso",
                "custombootConfig": { "preparingActions": [{ "powerAction": "off" }] } },
            "hardwareName": "nuc-1", "providerID": "tinkerbell://default/nuc-1",
        },
    }));
    let spec = machine.spec;
    assert_eq!(spec.image_lookup_os_version, "2204");
    assert_eq!(spec.hardware_affinity.required[0].label_selector.match_labels["type"], "cp");
    assert_eq!(spec.hardware_affinity.preferred[0].weight, 50);
    assert_eq!(spec.boot_options.custom.preparing_actions.len(), 1);
    assert_eq!(spec.boot_options.iso_url, "http://x/hook.iso");
    assert_eq!(spec.provider_id, "tinkerbell://default/nuc-1");
    assert_eq!(read::<TinkerbellMachine>(json!({})), TinkerbellMachine::default());
}

#[test]
fn fields_of_tinbox_are_read_in_each_version() {
    let spec = json!({ "hardwareSelector": { "manufacturer": "Intel", "plan": "NUC",
            "matchLabels": { "rack": "a" }, "disks": 2, "node-profile": "master" },
        "osImage": "ubuntu-20.04", "userDataSecret": { "name": "u", "apiVersion": "v1" },
        "failureDomain": "rack-a" });
    let template: TinkerbellMachineTemplate = read(json!({ "spec": { "template": {
        "metadata": { "labels": { "a": "b" } }, "spec": spec } } }));
    let template = template.spec.template;
    assert_eq!(template.metadata.labels["a"], "b");
    let selector = &template.spec.hardware_selector;
    assert_eq!((&*selector.manufacturer, &*selector.plan), ("Intel", "NUC"));
    let labels = [("disks", "2"), ("node-profile", "master"), ("rack", "a")];
    assert_eq!(selector.labels(), labels.map(|(a, b)| (a.into(), b.into())).into());
    assert_eq!(template.spec.user_data_secret.unwrap().name, "u");
    assert_eq!(template.spec.os_image, "ubuntu-20.04");
    let cluster: TinkerbellClusterTemplate = read(json!({ "spec": { "template": { "spec": {
        "controlPlaneEndpoint": { "host": "192.168.1.200", "port": 6443 } } } } }));
    assert!(cluster.spec.template.spec.control_plane_endpoint.is_set());
}

#[test]
fn a_status_is_written_whole_without_a_loss() {
    let stored = json!({ "ready": false, "errorReason": "x", "later": { "a": [1] },
        "addresses": [{ "type": "InternalIP", "address": "10.0.0.2" }],
        "conditions": [{ "type": "Ready", "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-11-20T10:00:00Z" }],
        "targetNamespace": "default", "instanceStatus": 1, "failureDomain": "rack-a" });
    let mut status: TinkerbellMachineStatus = read(stored.clone());
    assert_eq!(serde_json::to_value(&status).unwrap(), stored);
    assert!(!status.is_provisioned());
    status.set_provisioned();
    let written = serde_json::to_value(&status).unwrap();
    assert_eq!(written["ready"], true);
    assert_eq!(written["initialization"], json!({ "provisioned": true }));
    assert_eq!(written["later"], stored["later"]);
    let status = TinkerbellMachineTemplateStatus {
        capacity: [("cpu".to_owned(), "4".to_owned())].into(),
        node_info: Some(NodeInfo { architecture: "amd64".into(), ..NodeInfo::default() }),
        ..Default::default()
    };
    let expected = json!({ "capacity": { "cpu": "4" }, "nodeInfo": { "architecture": "amd64" } });
    assert_eq!(serde_json::to_value(&status).unwrap(), expected);
}

#[test]
fn failure_domains_have_the_shape_of_their_contract() {
    let domain = |control_plane| FailureDomain { control_plane, ..FailureDomain::default() };
    let domains: BTreeMap<String, FailureDomain> =
        [("b".to_owned(), domain(false)), ("a".to_owned(), domain(true))].into();
    let rows = [
        (
            Contract::V1beta1,
            json!({ "a": { "controlPlane": true }, "b": { "controlPlane": false } }),
        ),
        (
            Contract::V1beta2,
            json!([{ "name": "a", "controlPlane": true }, { "name": "b", "controlPlane": false }]),
        ),
    ];
    for (contract, expected) in rows {
        let value = FailureDomains::new(contract, domains.clone());
        let status = TinkerbellClusterStatus { failure_domains: value, ..Default::default() };
        let written = serde_json::to_value(&status).unwrap();
        assert_eq!(written["failureDomains"], expected);
        let again: TinkerbellClusterStatus = read(written);
        assert_eq!(again, status);
        assert_eq!(again.failure_domains.by_name(), domains);
    }
    for value in [json!("rack-a"), json!([7]), Value::Null] {
        let other: TinkerbellClusterStatus = read(json!({ "failureDomains": value }));
        assert_eq!(serde_json::to_value(other).unwrap(), json!({ "ready": false }));
    }
    // An absent field is valid in both contracts.
    let bare = serde_json::to_value(TinkerbellClusterStatus::default()).unwrap();
    assert_eq!(bare, json!({ "ready": false }));
}

#[test]
fn both_versions_of_the_core_kinds_are_read() {
    let group = "infrastructure.cluster.x-k8s.io";
    let old = json!({ "apiVersion": format!("{group}/v1beta1"), "kind": "TinkerbellMachine",
        "name": "m", "namespace": "n" });
    let new = json!({ "apiGroup": group, "kind": "TinkerbellMachine", "name": "m" });
    let rows = [
        (old, json!({ "infrastructureReady": true })),
        (new, json!({ "initialization": { "infrastructureProvisioned": true } })),
    ];
    let mut metadata = crate::meta::ObjectMeta { name: "m".into(), ..Default::default() };
    metadata.namespace = "n".into();
    for (reference, status) in rows {
        let machine: Machine = read(json!({
            "spec": { "clusterName": "c", "version": "v1.34.1", "infrastructureRef": reference,
                "bootstrap": { "dataSecretName": "s", "configRef": { "kind": "KubeadmConfig" } },
                "failureDomain": "rack-a", "providerID": "tinkerbell://n/m",
                "deletion": { "nodeDrainTimeoutSeconds": 1 } },
            "status": status,
        }));
        let to = machine.spec.infrastructure_ref.unwrap();
        assert_eq!(to.group(), group);
        assert!(to.refers_to("n", TINKERBELL_MACHINE, &metadata));
        assert!(!to.refers_to("n", TINKERBELL_CLUSTER, &metadata));
        assert!(!to.refers_to("other", TINKERBELL_MACHINE, &metadata) || !to.namespace.is_empty());
        assert_eq!(machine.spec.bootstrap.data_secret_name.as_deref(), Some("s"));
        assert!(machine.status.has_infrastructure());
        let cluster: Cluster = read(json!({ "status": status, "spec": { "paused": true,
            "controlPlaneEndpoint": { "host": "", "port": 0 } } }));
        assert!(cluster.status.has_infrastructure() && cluster.spec.pauses(&metadata));
        assert!(!cluster.spec.control_plane_endpoint.unwrap().is_set());
    }
    let bare: Cluster = read(json!({ "spec": {}, "status": { "initialization": {} } }));
    assert!(!bare.status.has_infrastructure() && !bare.spec.pauses(&metadata));
    metadata.annotations.insert(super::cluster_api::PAUSED.into(), String::new());
    assert!(bare.spec.pauses(&metadata));
}

/// Returns the schema of version v1beta1 in a definition.
fn schema(definition: &str) -> Value {
    let crd: Value = serde_json::from_str(definition).unwrap();
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let version = versions.iter().find(|it| it["name"] == "v1beta1").unwrap();
    version["schema"]["openAPIV3Schema"]["properties"].clone()
}

/// Removes descriptions, in which the schemas of an object and of its template may differ.
fn without_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "description" || !value.is_string());
            fields.values_mut().for_each(without_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(without_descriptions),
        _ => {}
    }
}

#[test]
fn a_template_has_the_schema_of_its_objects() {
    for (objects, templates) in [(MACHINES, MACHINE_TEMPLATES), (CLUSTERS, CLUSTER_TEMPLATES)] {
        let mut object = schema(objects)["spec"].clone();
        let template = schema(templates)["spec"]["properties"]["template"]["properties"].clone();
        let mut spec = template["spec"].clone();
        without_descriptions(&mut object);
        without_descriptions(&mut spec);
        assert_eq!(object, spec);
        assert!(template["metadata"]["properties"]["labels"].is_object());
    }
}

#[test]
fn each_resource_has_its_definition() {
    let rows = [
        (TINKERBELL_CLUSTER, CLUSTERS),
        (TINKERBELL_CLUSTER_TEMPLATE, CLUSTER_TEMPLATES),
        (TINKERBELL_MACHINE, MACHINES),
        (TINKERBELL_MACHINE_TEMPLATE, MACHINE_TEMPLATES),
    ];
    for (resource, definition) in rows {
        let crd: Value = serde_json::from_str(definition).unwrap();
        assert_eq!(crd["metadata"]["name"], format!("{}.{}", resource.plural, resource.group));
        assert_eq!(crd["spec"]["group"], resource.group);
        assert_eq!(crd["spec"]["names"]["kind"], resource.kind);
        assert_eq!(crd["spec"]["names"]["plural"], resource.plural);
    }
}

#[test]
fn the_schemas_have_every_written_field() {
    let status = TinkerbellMachineStatus {
        addresses: vec![MachineAddress::default()],
        failure_domain: "rack-a".into(),
        conditions: vec![Default::default()],
        target_namespace: "default".into(),
        instance_status: Some(1),
        initialization: Some(Initialization::default()),
        ..Default::default()
    };
    let cluster = TinkerbellClusterStatus {
        failure_domains: FailureDomains::List(vec![NamedFailureDomain::default()]),
        conditions: vec![Default::default()],
        initialization: Some(Initialization::default()),
        ..Default::default()
    };
    let hardware = BoxHardware {
        capacity: [("cpu".to_owned(), "4".to_owned())].into(),
        node_info: Some(NodeInfo::default()),
        message: "there is no Hardware".into(),
        ..Default::default()
    };
    let template = TinkerbellMachineTemplateStatus {
        capacity: hardware.capacity.clone(),
        node_info: Some(NodeInfo::default()),
        matching_hardware: Some(2),
        free_hardware: Some(1),
        boxes: vec![hardware.clone()],
        conditions: vec![Default::default()],
        ..Default::default()
    };
    let rows = [
        (MACHINES, serde_json::to_value(status).unwrap()),
        (CLUSTERS, serde_json::to_value(cluster).unwrap()),
        (MACHINE_TEMPLATES, serde_json::to_value(template).unwrap()),
    ];
    for (definition, status) in rows {
        let known = schema(definition)["status"]["properties"].clone();
        for name in status.as_object().unwrap().keys() {
            assert!(known[name].is_object(), "{name}");
        }
    }
    let known = &schema(MACHINE_TEMPLATES)["status"]["properties"]["boxes"]["items"]["properties"];
    for name in serde_json::to_value(hardware).unwrap().as_object().unwrap().keys() {
        assert!(known[name].is_object(), "{name}");
    }
}

#[test]
fn machine_templates_are_replaced_and_not_changed() {
    let refused = |new: &Value, old: &Value| TinkerbellMachineTemplateSpec::refused(new, Some(old));
    let template = |os_image: &str| {
        let spec = json!({ "osImage": os_image, "hardwareSelector": { "plan": "NUC" } });
        json!({ "metadata": { "name": "t" }, "spec": { "template": { "spec": spec } } })
    };
    let (old, mut new) = (template("a"), template("b"));
    assert_eq!(TinkerbellMachineTemplateSpec::refused(&new, None), None);
    assert!(refused(&new, &old).unwrap().contains("make another TinkerbellMachineTemplate"));
    // A dry run of the topology controller.
    new["metadata"]["annotations"] = json!({ "topology.cluster.x-k8s.io/dry-run": "" });
    assert_eq!(refused(&new, &old), None);
    // Metadata of the machines, and fields with their default.
    let mut same = template("a");
    same["metadata"]["labels"] = json!({ "a": "b" });
    same["spec"]["template"]["metadata"] = json!({ "labels": { "a": "b" } });
    same["spec"]["template"]["spec"]["hardwareName"] = json!("");
    assert_eq!(refused(&same, &old), None);
    // A spec that no type has, as from before a rule.
    let unreadable = json!({ "spec": { "template": { "spec": { "osImage": 1 } } } });
    assert_eq!(refused(&unreadable, &unreadable), None);
    assert!(refused(&old, &unreadable).is_some());
}
