//! What the fleet is to do: objects as an owner applies them, and how each workflow must end.

use std::time::Duration;

use api::bmc::MACHINE;
use api::core::SECRET;
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use serde_json::{Value, json};
use stdx::MacAddr;

/// Where everything is.
pub const NAMESPACE: &str = "default";
/// The action that fails whenever it is begun.
pub const DOOMED: &str = "doomed";
/// What it says.
pub const DOOM: &str = "the disk is broken";
/// Of so many machines one has a doomed workflow.
const DOOMED_EVERY: usize = 10;
/// Of so many machines one does its work in two tasks and restarts between two actions.
const RESTARTS_EVERY: usize = 3;

/// How a workflow is to end, if nobody cancels it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Well, whatever happens on the way.
    Succeeds,
    /// It cannot.
    Fails,
}

/// How the workflow of a machine is to end.
pub fn fate(index: usize) -> Fate {
    if index % DOOMED_EVERY == DOOMED_EVERY - 1 { Fate::Fails } else { Fate::Succeeds }
}

/// The address by which a machine and its agent are known.
pub fn mac(index: usize) -> MacAddr {
    let [.., a, b] = u32::try_from(index).unwrap_or_default().to_be_bytes();
    MacAddr([0x52, 0x54, 0, 0x77, a, b])
}

/// A machine's objects: Hardware, Machine and Workflow have one name.
pub fn name(index: usize) -> String {
    format!("nuc{index}")
}

/// The key of all of them.
pub fn key(index: usize) -> ObjectKey {
    ObjectKey::new(NAMESPACE, name(index))
}

/// The machine of a management controller at this address.
pub fn index_of(host: &str) -> Option<usize> {
    host.strip_prefix("bmc")?.parse().ok()
}

/// How long an image takes.
pub fn takes(image: &str) -> (u64, u64) {
    match image {
        "image2disk" => (20, 120),
        "reboot" | "kexec" => (0, 1),
        _ => (0, 5),
    }
}

/// The longest that an action may take.
const LIMIT: Duration = Duration::from_secs(600);

fn template(name: &str, tasks: &[&[(&str, &str)]]) -> Value {
    let limit = LIMIT.as_secs();
    let mut text = format!("name: {name}\nglobal_timeout: 0\ntasks:\n");
    for (at, actions) in tasks.iter().enumerate() {
        text += &format!("- name: task{at}\n  worker: \"{{{{.machine}}}}\"\n  actions:\n");
        for (action, image) in *actions {
            text += &format!(
                "  - name: {action}\n    image: {image}\n    timeout: {limit}\n    \
                 retries: 2\n    retry-wait: 3\n"
            );
        }
    }
    json!({
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "data": text },
    })
}

/// What all machines share.
pub fn shared() -> Vec<(Resource, Value)> {
    let (image, leave) = (("image", "image2disk"), ("leave", "reboot"));
    let templates = [
        template("install", &[&[("wipe", "disk-wipe"), image, ("write", "writefile"), leave]]),
        template(
            "restarts",
            &[
                &[image, ("again", "reboot"), ("seed", "writefile")],
                &[("user", "writefile"), ("leave", "kexec")],
            ],
        ),
        template("doomed", &[&[("wipe", "disk-wipe"), ("write", DOOMED), image, leave]]),
    ];
    let secret = json!({
        "metadata": { "name": "bmc", "namespace": NAMESPACE },
        "data": { "username": "YWRtaW4=", "password": "c2VjcmV0" },
    });
    let templates = templates.into_iter().map(|template| (TEMPLATE, template));
    templates.chain([(SECRET, secret)]).collect()
}

/// What a machine is.
pub fn machine(index: usize) -> Vec<(Resource, Value)> {
    let (name, mac) = (name(index), mac(index).to_string());
    let hardware = json!({
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "bmcRef": { "kind": "Machine", "name": name },
            "interfaces": [{ "dhcp": { "mac": mac }, "netboot": { "allowPXE": false } }],
        },
    });
    let controller = json!({
        "metadata": { "name": name, "namespace": NAMESPACE, "generation": 1 },
        "spec": { "connection": {
            "host": format!("bmc{index}"),
            "authSecretRef": { "name": "bmc", "namespace": NAMESPACE },
        } },
    });
    vec![(HARDWARE, hardware), (MACHINE, controller)]
}

/// What is to be done to a machine.
pub fn workflow(index: usize) -> Value {
    let template = match fate(index) {
        Fate::Fails => "doomed",
        Fate::Succeeds if index.is_multiple_of(RESTARTS_EVERY) => "restarts",
        Fate::Succeeds => "install",
    };
    let attempts = if fate(index) == Fate::Fails { 2 } else { 20 };
    json!({
        "metadata": { "name": name(index), "namespace": NAMESPACE },
        "spec": {
            "templateRef": template,
            "hardwareRef": name(index),
            "hardwareMap": { "machine": mac(index).to_string() },
            "bootOptions": { "bootMode": "netboot", "toggleAllowNetboot": true },
            "retry": { "attempts": attempts, "backoffSeconds": 5, "from": "failed" },
        },
    })
}

/// The Workflow of this `namespace/name` is of this machine's.
pub fn is_of(workflow_id: &str, index: usize) -> bool {
    workflow_id == key(index).to_string()
}

/// All workflows there are.
pub const KIND: Resource = WORKFLOW;
