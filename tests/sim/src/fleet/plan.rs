//! Workload of the fleet: objects as an owner applies them, and the expected end of each workflow.

use std::time::Duration;

use api::bmc::MACHINE;
use api::core::SECRET;
use api::meta::{ObjectKey, Resource};
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use serde_json::{Value, json};
use stdx::MacAddr;

/// Namespace of all objects.
pub const NAMESPACE: &str = "default";
/// Name of the action that always fails.
pub const DOOMED: &str = "doomed";
/// Failure message of a doomed action whose environment has no [`SAYS`].
pub const DOOM: &str = "the disk is broken";
/// Environment variable with the failure message of a doomed action.
pub const SAYS: &str = "SAYS";
/// One machine of this many has a doomed workflow.
const DOOMED_EVERY: usize = 10;
/// One machine of this many does its work in two tasks and restarts between two actions.
const RESTARTS_EVERY: usize = 3;
/// One machine of this many shares its workflow with a second machine.
const PAIR_EVERY: usize = 7;
/// Machines that have no part in any workflow.
const BYSTANDERS: usize = 5;

/// Kind of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Writes an image and restarts the machine.
    Install,
    /// Has two tasks, restarts between two actions and ends with kexec.
    Restarts,
    /// Has three tasks: one of its machine, one of a second machine, one of its machine again.
    Pair,
    /// Always fails in its last action.
    Doomed,
}

/// Expected end of a workflow that its owner does not cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Ends with success, whatever faults happen.
    Succeeds,
    /// Ends with failure, whatever faults happen.
    Fails,
}

/// Number and roles of the machines of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Machines with a workflow: numbers from 0 on.
    pub machines: usize,
    /// The kind of every workflow; `None` for a mixture.
    pub only: Option<Kind>,
}

impl Plan {
    /// Kind of the workflow of a machine.
    pub fn kind(self, index: usize) -> Kind {
        match self.only {
            Some(kind) => kind,
            None if index % DOOMED_EVERY == DOOMED_EVERY - 1 => Kind::Doomed,
            None if index.is_multiple_of(RESTARTS_EVERY) => Kind::Restarts,
            None if index % PAIR_EVERY == PAIR_EVERY - 1 => Kind::Pair,
            None => Kind::Install,
        }
    }

    /// Expected end of the workflow of a machine.
    pub fn fate(self, index: usize) -> Fate {
        if self.kind(index) == Kind::Doomed { Fate::Fails } else { Fate::Succeeds }
    }

    /// Second machine of the workflow of machine `index`; `None` unless the workflow is a
    /// [`Kind::Pair`].
    pub fn second(self, index: usize) -> Option<usize> {
        let is_pair = index < self.machines && self.kind(index) == Kind::Pair;
        is_pair.then_some(self.machines + index)
    }

    /// Machine whose workflow has a task for the second machine `index`; `None` if `index` is not a
    /// second machine.
    pub fn first(self, index: usize) -> Option<usize> {
        let first = index.checked_sub(self.machines)?;
        self.second(first).map(|_| first)
    }

    /// Machines of a workflow.
    pub fn members(self, index: usize) -> impl Iterator<Item = usize> {
        [index].into_iter().chain(self.second(index))
    }

    /// Second machines of workflows with a pair.
    pub fn seconds(self) -> impl Iterator<Item = usize> {
        (0..self.machines).filter_map(move |index| self.second(index))
    }

    /// Machines that have no part in any workflow.
    pub fn bystanders(self) -> impl Iterator<Item = usize> {
        (2 * self.machines..).take(BYSTANDERS)
    }

    /// All machines of the run.
    pub fn all(self) -> impl Iterator<Item = usize> {
        (0..self.machines).chain(self.seconds()).chain(self.bystanders())
    }

    /// Workflow object of a machine.
    pub fn workflow(self, index: usize) -> Value {
        let (template, attempts) = match self.kind(index) {
            Kind::Install => ("install", 20),
            Kind::Restarts => ("restarts", 20),
            Kind::Pair => ("pair", 20),
            Kind::Doomed => ("doomed", 2),
        };
        let mut workers = json!({ "machine": mac(index).to_string() });
        if let Some(second) = self.second(index) {
            workers["second"] = json!(mac(second).to_string());
        }
        json!({
            "metadata": { "name": name(index), "namespace": NAMESPACE },
            "spec": {
                "templateRef": template,
                "hardwareRef": name(index),
                "hardwareMap": workers,
                "bootOptions": { "bootMode": "netboot", "toggleAllowNetboot": true },
                "retry": { "attempts": attempts, "backoffSeconds": 5, "from": "failed" },
            },
        })
    }
}

/// MAC address of a machine, which is also the ID of its agent.
pub fn mac(index: usize) -> MacAddr {
    let [.., a, b] = u32::try_from(index).unwrap_or_default().to_be_bytes();
    MacAddr([0x52, 0x54, 0, 0x77, a, b])
}

/// Name of a machine's Hardware, Machine and Workflow, which is the same for all three.
pub fn name(index: usize) -> String {
    format!("nuc{index}")
}

/// Common key of a machine's objects.
pub fn key(index: usize) -> ObjectKey {
    ObjectKey::new(NAMESPACE, name(index))
}

/// Index of the machine whose BMC has this host name.
pub fn index_of(host: &str) -> Option<usize> {
    host.strip_prefix("bmc")?.parse().ok()
}

/// Range of an action's duration in seconds, by its image.
pub fn takes(image: &str) -> (u64, u64) {
    match image {
        "image2disk" => (20, 120),
        "reboot" | "kexec" => (0, 1),
        _ => (0, 5),
    }
}

/// Timeout of each action in a template.
const LIMIT: Duration = Duration::from_secs(600);

/// Builds a template of tasks; each task has a worker and actions, given as name and image.
fn template(name: &str, tasks: &[(&str, &[(&str, &str)])]) -> Value {
    let limit = LIMIT.as_secs();
    let mut text = format!("name: {name}\nglobal_timeout: 0\ntasks:\n");
    for (at, (worker, actions)) in tasks.iter().enumerate() {
        text += &format!("- name: task{at}\n  worker: \"{{{{.{worker}}}}}\"\n  actions:\n");
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

/// Template and Workflow of one action, without boot options: another workflow boots the machine.
pub fn one_action(index: usize, name: &str, image: &str, says: &str) -> [(Resource, Value); 2] {
    let text = format!(
        "name: {name}\nglobal_timeout: 0\ntasks:\n- name: {name}\n  worker: \
         \"{{{{.machine}}}}\"\n  actions:\n  - name: {name}\n    image: {image}\n    timeout: \
         600\n    environment: {{{SAYS}: '{says}'}}\n"
    );
    let metadata = json!({ "name": name, "namespace": NAMESPACE });
    let template = json!({ "metadata": metadata, "spec": { "data": text } });
    let workflow = json!({
        "metadata": metadata,
        "spec": {
            "templateRef": name,
            "hardwareRef": self::name(index),
            "hardwareMap": { "machine": mac(index).to_string() },
        },
    });
    [(TEMPLATE, template), (WORKFLOW, workflow)]
}

/// Objects that all machines share, such as templates.
pub fn shared() -> Vec<(Resource, Value)> {
    let (image, leave) = (("image", "image2disk"), ("leave", "reboot"));
    let (wipe, write) = (("wipe", "disk-wipe"), ("write", "writefile"));
    let again = [image, ("again", "reboot"), ("seed", "writefile")];
    let templates = [
        template("install", &[("machine", &[wipe, image, write, leave])]),
        template(
            "restarts",
            &[("machine", &again), ("machine", &[("user", "writefile"), ("leave", "kexec")])],
        ),
        template(
            "pair",
            &[
                ("machine", &[("write-one", "image2disk")]),
                ("second", &[("write-two", "image2disk"), ("leave-two", "reboot")]),
                ("machine", &[("leave-one", "reboot")]),
            ],
        ),
        template("doomed", &[("machine", &[wipe, ("write", DOOMED), image, leave])]),
    ];
    let secret = json!({
        "metadata": { "name": "bmc", "namespace": NAMESPACE },
        "data": { "username": "YWRtaW4=", "password": "c2VjcmV0" },
    });
    let templates = templates.into_iter().map(|template| (TEMPLATE, template));
    templates.chain([(SECRET, secret)]).collect()
}

/// Hardware and Machine (BMC) of a machine. The owner permits network boot of a second machine,
/// because a workflow permits network boot only for its own machine.
pub fn machine(index: usize, is_second: bool) -> Vec<(Resource, Value)> {
    let (name, mac) = (name(index), mac(index).to_string());
    let hardware = json!({
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "bmcRef": { "kind": "Machine", "name": name },
            "interfaces": [{ "dhcp": { "mac": mac }, "netboot": { "allowPXE": is_second } }],
        },
    });
    let controller = json!({
        "metadata": { "name": name, "namespace": NAMESPACE, "generation": 1 },
        "spec": { "connection": {
            "host": format!("bmc{index}"),
            "insecureTLS": true,
            "authSecretRef": { "name": "bmc", "namespace": NAMESPACE },
        } },
    });
    vec![(HARDWARE, hardware), (MACHINE, controller)]
}

/// Resource of the workflows.
pub const KIND: Resource = WORKFLOW;
