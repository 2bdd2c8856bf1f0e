use serde_json::{Value, json};

use super::{desired, parse};

const RACK: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: bmc-nuc1}
stringData: {username: ADMIN, password: ADMIN}
---
# nothing here
---
apiVersion: bmc.tinkerbell.org/v1alpha1
kind: Machine
metadata: {name: bmc-nuc1, namespace: lab}
spec: {connection: {host: 10.77.0.21, authSecretRef: {name: bmc-nuc1, namespace: default}}}
---
apiVersion: bmc.tinkerbell.org/v1alpha1
kind: Job
metadata: {name: on}
spec: {machineRef: {name: a, namespace: b}, tasks: [{powerAction: on}]}
---
apiVersion: tinkerbell.org/v1alpha1
kind: Hardware
metadata: {name: nuc1}
spec: {interfaces: [{dhcp: {mac: 52:54:00:77:00:01, vlan_id: '100'}}]}
";

#[test]
fn many_documents() {
    let all = parse("rack.yaml", RACK).unwrap();
    let kinds: Vec<_> = all.iter().map(|it| it.resource.kind).collect();
    assert_eq!(kinds, ["Secret", "Machine", "Job", "Hardware"]);
    let namespaces: Vec<_> = all.iter().map(|it| it.namespace("default")).collect();
    assert_eq!(namespaces, ["default", "lab", "default", "default"]);
    // YAML 1.1 would read `on` as true, and a MAC of digits as a number.
    assert_eq!(all[2].object["spec"]["tasks"][0]["powerAction"], "on");
    assert_eq!(all[3].object["spec"]["interfaces"][0]["dhcp"]["mac"], "52:54:00:77:00:01");
}

#[test]
fn lists_and_json() {
    let text = "\t{\"apiVersion\":\"v1\",\"kind\":\"List\",\n\t\"items\":[{\"apiVersion\":\"v1\",\
                \"kind\":\"Namespace\",\"metadata\":{\"name\":\"lab\"}}]}";
    let all = parse("-", text).unwrap();
    assert_eq!((all[0].name(), all[0].namespace("default")), ("lab", ""));
}

#[test]
fn the_json_of_older_tinkerbell() {
    let old = json!({
        "id": "CE2E62ED-826f-4485-a39f-a82bb74338e2",
        "metadata": "{\"facility\":{\"facility_code\":\"onprem\"},\"instance\":{}}",
        "network": { "interfaces": [{
            "dhcp": { "mac": "08:00:27:00:00:01", "arch": "x86_64", "uefi": false,
                      "ip": { "address": "192.168.1.5", "gateway": "192.168.1.1",
                              "netmask": "255.255.255.248" } },
            "netboot": { "allow_pxe": true, "allow_workflow": true },
        }] },
    });
    let all = parse("hardware.json", &old.to_string()).unwrap();
    let want = json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": {
            "name": "ce2e62ed-826f-4485-a39f-a82bb74338e2",
            "annotations": { "tinbox.dev/legacy-id": "CE2E62ED-826f-4485-a39f-a82bb74338e2" },
        },
        "spec": {
            "metadata": { "facility": { "facility_code": "onprem" }, "instance": {} },
            "interfaces": [{
                "dhcp": old["network"]["interfaces"][0]["dhcp"],
                "netboot": { "allowPXE": true, "allowWorkflow": true },
            }],
        },
    });
    assert_eq!(all[0].object, want);
}

#[test]
fn mistakes_are_placed_and_secrets_kept() {
    let cases = [
        ("", "rack.yaml: it contains no object"),
        ("a: b\n", "document 1: it has no apiVersion and kind"),
        ("- a\n", "document 1: it is not an object"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "v1 Pod is not a kind"),
        ("apiVersion: v1\nkind: Secret\n", "document 1: it has no metadata.name"),
        (
            "apiVersion: tinkerbell.org/v1alpha1\nkind: Hardware\nmetadata: {name: a}\n\
             spec: {interfaces: [{dhcp: {uefi: yes}}]}\n",
            "hardware/a does not match its kind: invalid type: string \"yes\"",
        ),
        ("password: hunter2\n  more: [\n", "line 2"),
    ];
    for (text, part) in cases {
        let error = parse("rack.yaml", text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(!error.contains("hunter2") && !error.contains('\n'), "{error}");
    }
}

fn live() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": { "name": "a", "uid": "1", "labels": { "other": "x" } },
        "data": { "username": "QURNSU4=" },
    })
}

#[test]
fn what_is_so_already_is_not_touched() {
    let same = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" },
        "stringData": { "username": "ADMIN" },
    });
    assert_eq!(desired(&live(), &same), live());
}

#[test]
fn what_the_file_speaks_of_is_as_the_file_has_it() {
    let manifest = json!({
        "metadata": { "name": "a", "uid": "other", "labels": { "mine": "y" } },
        "data": { "password": "eA==" },
        "status": { "ignored": true },
    });
    let mut want = live();
    want["metadata"]["labels"]["mine"] = json!("y");
    want["data"] = json!({ "password": "eA==" });
    assert_eq!(desired(&live(), &manifest), want);
}
