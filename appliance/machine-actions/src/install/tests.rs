use std::sync::Arc;

use api::network::NETWORK;
use api::os_image::OS_IMAGE;
use api::tinkerbell::{AGENT_ATTRIBUTES, AUTO_DISCOVERED, HARDWARE, TEMPLATE, WORKFLOW};
use objects::Objects as _;
use objects::fake::Memory;
use serde_json::{Value, json};

use super::InstallForm;
use crate::control::MachineActions;
use crate::error::ActionError;

const MAC: &str = "54:b2:03:a1:4c:01";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk0X1w7K6s3yT1p8h2v5Jc9bq0eRkUuZ4mWnDfLxTgA me";

/// Returns a box that serves 10.77.0.0/24 in this mode.
fn world(mode: &str) -> (Arc<Memory>, MachineActions) {
    let memory = Arc::new(Memory::default());
    let mut spec = json!({
        "interface": "eth1",
        "address": "10.77.0.1/24",
        "mode": mode,
        "gateway": "10.77.0.254",
        "nameServers": ["10.77.0.254"],
    });
    if mode == "pool" {
        spec["pool"] = json!(["10.77.0.100-10.77.0.110"]);
    }
    memory.put(NETWORK, json!({ "metadata": { "name": "eth1" }, "spec": spec }));
    let actions = MachineActions { objects: memory.clone() };
    (memory, actions)
}

fn form(machine: &str) -> InstallForm {
    InstallForm {
        machine: machine.to_owned(),
        system: "debian".to_owned(),
        name: "nuc-01".to_owned(),
        disk: "/dev/nvme0n1".to_owned(),
        address: "10.77.0.11".to_owned(),
        ssh_keys: format!("{KEY}\r\n"),
        id: "ab12".to_owned(),
        ..InstallForm::default()
    }
}

/// Returns a Hardware that an agent reported, with two disks.
fn discovered() -> Value {
    let attributes = json!({
        "product": { "vendor": "Intel", "name": "NUC13ANHi5" },
        "blockDevices": [
            { "name": "sda", "size": "1TB", "model": "SSD" },
            { "name": "nvme0n1", "size": "512GB", "vendor": "Samsung", "serialNumber": "S4" },
            { "name": "loop0" },
        ],
    });
    json!({
        "metadata": {
            "name": "discovery-54-b2-03-a1-4c-01",
            "namespace": "default",
            "labels": { AUTO_DISCOVERED: "true" },
            "annotations": { AGENT_ATTRIBUTES: attributes.to_string() },
        },
        "spec": {
            "agentID": MAC,
            "disks": [{ "device": "/dev/sda" }],
            "interfaces": [{ "dhcp": { "mac": MAC }, "netboot": { "allowPXE": true } }],
            "metadata": { "instance": { "id": MAC } },
        },
    })
}

async fn one(memory: &Memory, kind: api::meta::Resource) -> Value {
    let mut all = memory.list(kind, None).await.unwrap();
    assert_eq!(all.len(), 1, "{}: {all:?}", kind.kind);
    all.remove(0)
}

fn why(error: ActionError) -> String {
    error.to_string()
}

#[tokio::test]
async fn an_unknown_machine_gets_hardware_template_and_workflow() {
    let (memory, actions) = world("reserved");
    let choices = actions.choices(MAC).await.unwrap();
    assert!(!choices.is_known && choices.may_rename && choices.disks.is_empty());
    assert_eq!(choices.address, "10.77.0.11");
    let names: Vec<&str> = choices.systems.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["debian", "ubuntu", "flatcar", "talos"]);
    let made = actions.install(&form(MAC)).await.unwrap();
    assert_eq!((made.machine.as_str(), made.workflow.as_str()), ("nuc-01", "nuc-01-ab12"));
    let hardware = one(&memory, HARDWARE).await;
    let interface = &hardware["spec"]["interfaces"][0];
    assert_eq!(interface["netboot"]["allowPXE"], true);
    assert_eq!(interface["dhcp"]["mac"], MAC);
    let ip = json!({
        "address": "10.77.0.11", "netmask": "255.255.255.0", "gateway": "10.77.0.254",
    });
    assert_eq!(interface["dhcp"]["ip"], ip);
    assert_eq!(interface["dhcp"]["name_servers"], json!(["10.77.0.254"]));
    let instance = &hardware["spec"]["metadata"]["instance"];
    assert_eq!(instance["hostname"], "nuc-01");
    assert_eq!(instance["ssh_keys"], json!([KEY]));
    let template = one(&memory, TEMPLATE).await;
    let data = template["spec"]["data"].as_str().unwrap();
    assert!(data.contains("http://10.77.0.1:50061"), "{data}");
    let workflow = one(&memory, WORKFLOW).await;
    assert_eq!(workflow["spec"]["hardwareMap"], json!({ "device_1": MAC }));
    assert_eq!(workflow["spec"]["hardwareRef"], "nuc-01");
    assert!(workflow["spec"].get("bootOptions").is_none(), "the box cannot switch the machine");
}

#[tokio::test]
async fn a_request_that_is_sent_twice_installs_once() {
    let (memory, actions) = world("reserved");
    for _ in 0..2 {
        actions.install(&form(MAC)).await.unwrap();
    }
    one(&memory, WORKFLOW).await;
    one(&memory, HARDWARE).await;
    one(&memory, TEMPLATE).await;
}

#[tokio::test]
async fn a_discovered_machine_gets_the_chosen_name_and_disk_and_stays() {
    let (memory, actions) = world("pool");
    memory.put(HARDWARE, discovered());
    let choices = actions.choices("discovery-54-b2-03-a1-4c-01").await.unwrap();
    assert_eq!(choices.model, "Intel NUC13ANHi5");
    let disks: Vec<_> =
        choices.disks.iter().map(|it| (it.device.as_str(), it.about.as_str())).collect();
    assert_eq!(disks, [("/dev/sda", "SSD · 1TB"), ("/dev/nvme0n1", "Samsung · 512GB · S4")]);
    // The page still shows the machine under its MAC address.
    let (address, machine) = (String::new(), MAC.to_owned());
    let made = actions.install(&InstallForm { address, machine, ..form("") }).await.unwrap();
    assert_eq!(made.machine, "nuc-01");
    let hardware = one(&memory, HARDWARE).await;
    assert_eq!(hardware["metadata"]["name"], "nuc-01");
    assert!(hardware["metadata"]["labels"].get(AUTO_DISCOVERED).is_none());
    assert!(hardware["metadata"]["annotations"][AGENT_ATTRIBUTES].is_string());
    let disks = json!([{ "device": "/dev/nvme0n1" }, { "device": "/dev/sda" }]);
    assert_eq!(hardware["spec"]["disks"], disks);
    assert_eq!(hardware["spec"]["metadata"]["instance"]["id"], MAC);
}

#[tokio::test]
async fn a_machine_with_a_bmc_keeps_its_name_and_is_booted() {
    let (memory, actions) = world("reserved");
    let mut hardware = discovered();
    hardware["metadata"] = json!({ "name": "nuc7", "namespace": "lab" });
    hardware["spec"]["bmcRef"] = json!({ "kind": "Machine", "name": "bmc-nuc7" });
    hardware["spec"]["userData"] = "#cloud-config\n".into();
    hardware["spec"]["metadata"]["instance"]["hostname"] = "db.example".into();
    memory.put(HARDWARE, hardware);
    let choices = actions.choices("nuc7").await.unwrap();
    assert!(choices.has_bmc && !choices.may_rename);
    assert_eq!(choices.name, "nuc7");
    actions.install(&form("nuc7")).await.unwrap();
    let hardware = one(&memory, HARDWARE).await;
    assert_eq!(hardware["metadata"]["name"], "nuc7", "a form cannot rename it");
    assert_eq!(hardware["spec"]["metadata"]["instance"]["hostname"], "db.example");
    assert_eq!(hardware["spec"]["userData"], "#cloud-config\n", "an empty field changes nothing");
    let workflow = one(&memory, WORKFLOW).await;
    assert_eq!(workflow["metadata"]["namespace"], "lab");
    assert_eq!(workflow["spec"]["bootOptions"]["bootMode"], "netboot");
}

#[tokio::test]
async fn a_machine_of_cluster_api_is_not_installed() {
    let (memory, actions) = world("reserved");
    let mut hardware = discovered();
    hardware["metadata"]["labels"] = json!({ api::infrastructure::OWNER_NAME: "edge-1" });
    hardware["metadata"]["name"] = "nuc7".into();
    memory.put(HARDWARE, hardware);
    let error = why(actions.install(&form("nuc7")).await.unwrap_err());
    assert_eq!(error, "nuc7 belongs to machine edge-1 of Cluster API");
    assert!(memory.list(WORKFLOW, None).await.unwrap().is_empty());
}

#[tokio::test]
async fn flatcar_gets_its_keys_by_ignition() {
    let (memory, actions) = world("reserved");
    actions.install(&InstallForm { system: "flatcar".into(), ..form(MAC) }).await.unwrap();
    let hardware = one(&memory, HARDWARE).await;
    let ignition = hardware["spec"]["userData"].as_str().unwrap();
    let ignition: Value = serde_json::from_str(ignition).unwrap();
    assert_eq!(ignition["passwd"]["users"][0]["sshAuthorizedKeys"], json!([KEY]));
}

#[tokio::test]
async fn a_template_of_the_owner_is_used_as_it_is_and_shown_before() {
    let (memory, actions) = world("reserved");
    let data = "version: \"0.1\"\nname: own\nglobal_timeout: 60\ntasks:\n- name: a\n  worker: \
                \"{{.device_1}}\"\n  actions:\n  - name: stream\n    image: image2disk\n    \
                timeout: 60\n    environment:\n      DEST_DISK: \
                \"{{ index .Hardware.Disks 0 }}\"\n";
    let metadata = json!({ "name": "own", "namespace": "default" });
    memory.put(TEMPLATE, json!({ "metadata": metadata, "spec": { "data": data } }));
    let own = InstallForm { system: "own".to_owned(), ..form(MAC) };
    let shown = actions.preview(&own).await.unwrap();
    assert!(shown.contains("DEST_DISK: \"/dev/nvme0n1\"") && shown.contains(MAC), "{shown}");
    assert!(memory.list(HARDWARE, None).await.unwrap().is_empty(), "a preview writes nothing");
    actions.install(&own).await.unwrap();
    assert_eq!(one(&memory, TEMPLATE).await["spec"]["data"], data);
}

#[tokio::test]
async fn every_mistake_of_a_form_is_reported_and_nothing_is_written() {
    let (memory, actions) = world("reserved");
    let wrong = InstallForm {
        name: "Nuc 1".to_owned(),
        disk: "nvme0n1; reboot".to_owned(),
        address: "10.78.0.11".to_owned(),
        ssh_keys: format!("{KEY}\nssh-ed25519 short me"),
        user_data: "x".repeat(super::USER_DATA_BYTES_MAX + 1),
        ..form(MAC)
    };
    let ActionError::Fields(fields) = actions.install(&wrong).await.unwrap_err() else {
        panic!("not the fields");
    };
    let fields: Vec<_> = fields.iter().map(|it| (it.field, it.why.as_str())).collect();
    let names: Vec<&str> = fields.iter().map(|it| it.0).collect();
    assert_eq!(names, ["name", "disk", "address", "ssh_keys", "user_data"]);
    assert_eq!(fields[2].1, "10.78.0.11 is not in a network of this box: 10.77.0.0/24.");
    assert!(fields[3].1.starts_with("Line 2 is not a public key"), "{}", fields[3].1);
    for kind in [HARDWARE, TEMPLATE, WORKFLOW] {
        assert!(memory.list(kind, None).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn addresses_of_box_router_and_network_are_refused() {
    let (_, actions) = world("reserved");
    for (address, words) in [
        ("", "type an address"),
        ("10.77.0.1", "is the address of this box"),
        ("10.77.0.254", "is the address of the router"),
        ("10.77.0.255", "is an address of the network itself"),
        ("10.77.0.311", "is not an IPv4 address"),
    ] {
        let wrong = InstallForm { address: address.to_owned(), ..form(MAC) };
        let error = why(actions.install(&wrong).await.unwrap_err());
        assert!(error.contains(words), "{address}: {error}");
    }
    let (_, pool) = world("pool");
    pool.install(&InstallForm { address: String::new(), ..form(MAC) }).await.unwrap();
}

#[tokio::test]
async fn a_private_key_is_refused_by_name() {
    let (_, actions) = world("reserved");
    let ssh_keys = "-----BEGIN OPENSSH PRIVATE KEY-----".to_owned();
    let error = why(actions.install(&InstallForm { ssh_keys, ..form(MAC) }).await.unwrap_err());
    assert!(error.starts_with("This is a private key"), "{error}");
}

#[tokio::test]
async fn a_name_that_another_machine_has_is_refused() {
    let (memory, actions) = world("reserved");
    let metadata = json!({ "name": "nuc-01", "namespace": "default" });
    memory.put(HARDWARE, json!({ "metadata": metadata, "spec": {} }));
    for error in
        [actions.install(&form(MAC)).await.unwrap_err(), actions.add(&form(MAC)).await.unwrap_err()]
    {
        assert_eq!(why(error), "Another machine is called nuc-01. Choose another name.");
    }
}

#[tokio::test]
async fn a_machine_is_added_without_a_workflow() {
    let (memory, actions) = world("reserved");
    let form = InstallForm { disk: String::new(), system: String::new(), ..form(MAC) };
    assert_eq!(actions.add(&form).await.unwrap(), "nuc-01");
    assert_eq!(actions.add(&form).await.unwrap(), "nuc-01", "the same request again");
    let hardware = one(&memory, HARDWARE).await;
    assert!(hardware["spec"].get("disks").is_none());
    assert!(memory.list(WORKFLOW, None).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_system_that_does_not_exist_and_a_box_without_a_network_are_refused() {
    let (_, actions) = world("reserved");
    let error = actions.install(&InstallForm { system: "plan9".into(), ..form(MAC) }).await;
    assert!(why(error.unwrap_err()).contains("no OS image \"plan9\""));
    let (_, off) = world("off");
    let error = why(off.install(&form(MAC)).await.map(drop).unwrap_err());
    assert!(error.contains("no network"), "{error}");
}

#[tokio::test]
async fn an_os_image_is_installed_by_a_template_of_its_own() {
    let (memory, actions) = world("reserved");
    let image = |url: &str| {
        json!({
            "metadata": { "name": "debian-13", "namespace": "default" },
            "spec": { "url": url, "os": { "distro": "debian", "version": "13" } },
        })
    };
    memory.put(OS_IMAGE, image("upload://box/debian-13.qcow2"));
    let choices = actions.choices(MAC).await.unwrap();
    let first = &choices.systems[0];
    assert_eq!((first.name.as_str(), first.title.as_str()), ("image/debian-13", "debian-13"));
    assert_eq!(first.about, "OS image debian-13, on this box.");
    let names: Vec<&str> = choices.systems.iter().map(|it| it.name.as_str()).collect();
    assert!(!names.contains(&"debian") && names.contains(&"ubuntu"), "{names:?}");
    let of_image = InstallForm { system: "image/debian-13".to_owned(), ..form(MAC) };
    let preview = actions.preview(&of_image).await.unwrap();
    assert!(preview.contains("upload://box/debian-13.qcow2"), "{preview}");
    assert!(preview.contains("/dev/nvme0n1p1") && preview.contains("http://10.77.0.1:50061"));
    actions.install(&of_image).await.unwrap();
    let template = one(&memory, TEMPLATE).await;
    let name = template["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("debian-13-") && name.len() == 18, "{name}");
    assert_eq!(one(&memory, WORKFLOW).await["spec"]["templateRef"], name);
    // The form offers the image, and not its Template.
    let choices = actions.choices("nuc-01").await.unwrap();
    assert!(choices.systems.iter().all(|it| it.name != name));

    // A changed image has another Template; the first stays as it is.
    memory.put(OS_IMAGE, image("https://images.example/debian-13.qcow2"));
    let again = InstallForm { machine: "nuc-01".to_owned(), id: "cd34".to_owned(), ..of_image };
    actions.install(&again).await.unwrap();
    assert_eq!(memory.list(TEMPLATE, None).await.unwrap().len(), 2);
    let unknown = InstallForm { system: "image/windows".to_owned(), ..again };
    let text = why(actions.install(&unknown).await.unwrap_err());
    assert!(text.contains("no OS image \"windows\""), "{text}");
}
