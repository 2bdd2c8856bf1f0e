//! The four manifests of the founding guide on the box's own API: in every order, and with a stock
//! agent that runs the Workflow.

mod cascades;
mod paired;

use std::collections::BTreeMap;

use peers::poll;
use serde_json::{Value, json};
use stdx::testing::PATIENCE;

use crate::agents::rack::{Generation, Rack, act};

/// Manifests of the guide, as printed there.
const MANIFESTS: &str = include_str!("../../founding-guide.yaml");
/// Kinds of the guide with their printed names, in the order of [`MANIFESTS`].
const KINDS: [(&str, &str); 4] = [
    ("tinkerbellclusters", "my-nuc-cluster-infra"),
    ("tinkerbellmachinetemplates", "nuc-control-plane-template"),
    ("machines", "nuc-control-plane-1"),
    ("tinkerbellmachines", "nuc-control-plane-1"),
];
const MACHINE: &str = "nuc-control-plane-1";

/// Returns the Hardware of the NUC with this number from 1, whose annotation names the Template to
/// run. `labels` name the model, else the report of an agent does. A real agent replaces the report
/// by its own.
fn hardware(number: usize, labels: &Value) -> Value {
    let name = format!("nuc{number}");
    let facts = json!({ "product": { "vendor": "Intel(R) Client Systems", "name": "NUC8i5BEH" } });
    json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": { "name": name, "labels": labels, "annotations": {
            "tinkerbell.org/agent-attributes": facts.to_string(),
            "hardware.tinkerbell.org/capt-template-override": "record",
        } },
        "spec": {
            "agentID": name,
            "disks": [{ "device": "/dev/nvme0n1" }],
            "interfaces": [{ "dhcp": {
                "mac": format!("52:54:00:88:01:{number:02x}"), "hostname": name,
                "ip": { "address": format!("192.168.1.{}", 20 + number) },
            } }],
        },
    })
}

/// Returns a rack with a NUC, and with the Secret and the OSImage that the guide names.
fn rack(labels: &Value) -> Rack {
    rack_with(labels, 1)
}

/// Returns a rack as [`rack`] does, with this many NUCs.
fn rack_with(labels: &Value, count: usize) -> Rack {
    let rack = Rack::start();
    (1..=count).for_each(|number| rack.apply_object(&hardware(number, labels)));
    let task = json!({ "name": "record", "worker": "{{.device_1}}", "actions": [act(&rack, "a")] });
    let text = json!({ "version": "0.1", "name": "record", "global_timeout": 600,
        "tasks": [task] });
    for object in [
        json!({ "apiVersion": "tinkerbell.org/v1alpha1", "kind": "Template",
            "metadata": { "name": "record" }, "spec": { "data": text.to_string() } }),
        json!({ "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "nuc-control-plane-userdata" },
            "stringData": { "value": "#cloud-config\n" } }),
        json!({ "apiVersion": "tinbox.dev/v1alpha1", "kind": "OSImage",
            "metadata": { "name": "ubuntu-20.04" },
            "spec": { "url": "http://192.0.2.1/ubuntu.img",
                "os": { "distro": "ubuntu", "version": "20.04" } } }),
    ] {
        rack.apply_object(&object);
    }
    rack
}

fn orders() -> Vec<[usize; 4]> {
    let mut all = Vec::new();
    for at in 0..256_usize {
        let order = [at % 4, at / 4 % 4, at / 16 % 4, at / 64];
        if (0..4).all(|one| order.contains(&one)) {
            all.push(order);
        }
    }
    all
}

fn apply(rack: &Rack, order: [usize; 4]) {
    let manifests: Vec<&str> = MANIFESTS.split("---\n").collect();
    for at in order {
        let printed = rack.kubectl.run(&["apply", "-f", "-"], manifests[at]).unwrap();
        assert!(printed.success, "{order:?}: {printed:?}");
    }
}

/// Returns the conditions of a machine: status, reason and message by type.
fn conditions(machine: &Value) -> BTreeMap<String, [String; 3]> {
    let all = machine["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |it: &Value, field: &str| it[field].as_str().unwrap().to_owned();
    let row = |it: &Value| {
        (text(it, "type"), ["status", "reason", "message"].map(|field| text(it, field)))
    };
    all.iter().map(row).collect()
}

/// Waits until the condition `Ready` of the machine has a reason.
fn wait(rack: &Rack, reason: &str) -> Value {
    let mut machine = Value::Null;
    let waited = poll(&format!("{MACHINE} to be {reason}"), PATIENCE, || {
        machine = rack.get(&["tinkerbellmachines", MACHINE]);
        conditions(&machine).get("Ready").is_some_and(|ready| ready[1] == reason)
    });
    waited.unwrap_or_else(|error| panic!("{error}\n{machine:#}"));
    machine
}

/// Returns the end state without identities, times and the message of the choice.
fn state(rack: &Rack) -> Value {
    let machine = wait(rack, "WaitingForAgent");
    let host = rack.get(&["hardware", "nuc1"]);
    let workflow = rack.get(&["workflow", MACHINE]);
    json!({
        "machine": machine["spec"],
        "conditions": conditions(&machine),
        "state": machine["status"]["instanceState"],
        "labels": host["metadata"]["labels"],
        "userData": host["spec"]["userData"],
        "workflow": workflow["spec"],
    })
}

fn delete(rack: &Rack) {
    for (kind, name) in KINDS {
        let printed = rack.kubectl.run(&["delete", kind, name], "").unwrap();
        assert!(printed.success, "{printed:?}");
    }
    let host = rack.get(&["hardware", "nuc1"]);
    let owner = &host["metadata"]["labels"]["v1alpha1.tinkerbell.org/ownerName"];
    assert!(owner.is_null(), "{host:#}");
    assert_eq!(host["spec"].get("userData"), None, "{host:#}");
}

#[test]
fn the_manifests_have_one_end_state_in_every_order() {
    let rack = rack(&json!({}));
    let mut expected = Value::Null;
    let orders = orders();
    assert_eq!(orders.len(), 24);
    for order in orders {
        apply(&rack, order);
        let found = state(&rack);
        if expected.is_null() {
            expected = found.clone();
        }
        assert_eq!(found, expected, "{order:?}");
        delete(&rack);
    }
    assert_eq!(expected["userData"], "#cloud-config\n");
}

#[test]
fn a_stock_agent_installs_the_machine_of_the_guide() {
    let rack = rack(&json!({ "manufacturer": "Intel", "plan": "NUC" }));
    apply(&rack, [0, 1, 2, 3]);
    wait(&rack, "WaitingForAgent");
    let _agent = rack.agent(Generation::Today, "nuc1");
    let machine = wait(&rack, "Provisioned");
    assert_eq!(machine["status"]["initialization"]["provisioned"], true);
    assert_eq!(machine["spec"]["providerID"], "tinkerbell://nuc-control-plane-1");
    let addresses = machine["status"]["addresses"].to_string();
    assert!(addresses.contains("192.168.1.21"), "{addresses}");
    assert_eq!(rack.log(), ["begin a", "end a"]);
    for (kind, name) in KINDS {
        let printed = rack.kubectl.run(&["get", kind, "-A"], "").unwrap();
        let row = printed.out.lines().find(|row| row.contains(name));
        assert!(row.is_some(), "{printed:?}");
    }
    let printed = rack.kubectl.run(&["get", "tinkerbellmachines", "-A"], "").unwrap();
    assert!(printed.out.contains("Provisioned   true"), "{}", printed.out);
    let events = rack.events(MACHINE);
    let reasons: Vec<&str> = events.iter().map(|(reason, _)| reason.as_str()).collect();
    for reason in ["HardwareClaimed", "InstallationStarted", "Provisioned"] {
        assert!(reasons.contains(&reason), "{reasons:?}");
    }
    // The deletion releases the Hardware. The same Machine is then installed again.
    delete(&rack);
    apply(&rack, [3, 2, 1, 0]);
    wait(&rack, "Provisioned");
    assert_eq!(rack.log(), ["begin a", "end a", "begin a", "end a"]);
}
