//! A box with machines that stock agents install, a management cluster that is paired with the box,
//! and the workload clusters in memory.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use capi::Repository;
use peers::cluster_api::Managers;
use peers::{Cluster, ClusterConfig, Kubectl, Process, built, loopback_port, poll, run};
use serde_json::{Value, json};

use super::manifest::{self, Install, USE};
use crate::agents::rack::{Generation, Rack};
use crate::claim::program;

/// Action that installs a Kubernetes version on the disk of a machine.
const INSTALL: &str = r#"#!/bin/sh
echo "$KUBERNETES" >"/disks/$DISK"
echo "$DISK $KUBERNETES" >>/disks/log
"#;
/// Timeout of each wait. A rollout replaces three machines, and Cluster API waits up to 30 s
/// between two steps.
const LIMIT: Duration = Duration::from_secs(300);
const FAILURE_DOMAIN: &str = "topology.tinbox.dev/failure-domain";

/// All programs of the test.
pub struct Site {
    pub rack: Rack,
    pub management: Kubectl,
    image: String,
    disks: PathBuf,
    endpoint: (&'static str, u16),
    agents: Vec<Process>,
    _kubelets: Process,
    _managers: Managers,
    _cluster: Cluster,
}

/// Runs kubectl, and returns its output.
pub fn good(kubectl: &Kubectl, arguments: &[&str], input: &str) -> String {
    let printed = kubectl.run(arguments, input).unwrap();
    assert!(printed.success, "{arguments:?}: {printed:?}");
    printed.out
}

impl Site {
    /// Starts all programs, and pairs the box.
    pub fn start() -> Self {
        let rack = Rack::start();
        // The agents of other tests have no disks.
        good(&rack.kubectl, &["delete", "hardware", "--all"], "");
        let image = rack.docker.publish("install", INSTALL).unwrap();
        let disks = rack.record().join("disks");
        fs::create_dir(&disks).unwrap();
        let kubeconfig = rack.tinboxd.kubeconfig();
        let arguments = [("kubeconfig", &kubeconfig), ("disks", &disks)]
            .map(|(flag, path)| format!("--{flag}={}", path.display()));
        let kubelets = built("workload-clusters", &[]).unwrap().remove(0);
        let log = rack.record().join("kubelets.txt");
        let kubelets = Process::start(&kubelets, &arguments, &log).unwrap();

        let mut cluster = Cluster::start(&ClusterConfig::default()).unwrap();
        let management = cluster.kubectl().unwrap();
        let release = Repository::new("0.1.0");
        good(&management, &["apply", "--server-side", "-f", "-"], release.components());
        let managers = Managers::start(&cluster).unwrap();
        cluster.start_controllers().unwrap();
        // The box knows all loopback addresses as its own, and refuses them as an endpoint.
        let endpoint = ("localhost", loopback_port().unwrap());
        let site = Self {
            rack,
            management,
            image,
            disks,
            endpoint,
            agents: Vec::new(),
            _kubelets: kubelets,
            _managers: managers,
            _cluster: cluster,
        };
        site.pair();
        site
    }

    fn pair(&self) {
        // The box accepts only kubeconfigs with embedded certificates.
        let view = ["config", "view", "--raw", "--minify", "--flatten"];
        let file = self.rack.record().join("management.kubeconfig");
        fs::write(&file, good(&self.management, &view, "")).unwrap();
        let mut tinbox = Command::new(program("tinbox"));
        tinbox.env_clear().arg("--kubeconfig").arg(self.rack.tinboxd.kubeconfig());
        tinbox.args(["capi", "pair", "prod", "--management-kubeconfig"]).arg(&file);
        let printed = run(tinbox, "").unwrap();
        assert!(printed.success && printed.err.contains("the box is connected"), "{printed:?}");
    }

    /// Adds Hardware without a BMC, whose stock agent runs.
    pub fn add_machine(&mut self, name: &str, usage: &str, domain: &str) {
        let number = self.agents.len() + 1;
        self.rack.apply_object(&json!({
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Hardware",
            "metadata": { "name": name, "labels": { USE: usage, FAILURE_DOMAIN: domain } },
            "spec": {
                "agentID": name,
                "disks": [{ "device": "/dev/nvme0n1" }],
                "interfaces": (1..=2).map(|network| json!({ "dhcp": {
                    "mac": format!("52:54:00:99:{network:02x}:{number:02x}"), "hostname": name,
                    "ip": { "address": address(network, number) },
                } })).collect::<Vec<_>>(),
            },
        }));
        self.agents.push(self.rack.agent(Generation::Today, name));
    }

    /// Applies objects to the management cluster.
    pub fn apply(&self, objects: &[Value]) {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        good(&self.management, &["apply", "-f", "-"], &list.to_string());
    }

    /// Applies the template of machines with this use and Kubernetes version.
    pub fn apply_template(&self, usage: &str, version: &str) {
        let install = Install { image: &self.image, disks: &self.disks };
        self.apply(&[manifest::template(install, usage, version)]);
    }

    /// Applies Cluster and TinkerbellCluster.
    pub fn apply_cluster(&self) {
        self.apply(&manifest::cluster(self.endpoint));
    }

    /// Returns the number of installations that ran, of all machines.
    pub fn installations(&self) -> usize {
        fs::read_to_string(self.disks.join("log")).unwrap_or_default().lines().count()
    }

    /// Returns objects of the management cluster.
    pub fn list(&self, resource: &str) -> Vec<Value> {
        items(&good(&self.management, &["get", resource, "-o", "json"], ""))
    }

    /// Returns objects of the box.
    pub fn list_box(&self, resource: &str) -> Vec<Value> {
        items(&good(&self.rack.kubectl, &["get", resource, "-o", "json"], ""))
    }

    /// Returns the Nodes of the workload cluster, by the kubeconfig that Cluster API writes.
    pub fn nodes(&self) -> Vec<Value> {
        let secret = format!("secret/{}-kubeconfig", manifest::CLUSTER);
        let path = "go-template={{.data.value | base64decode}}";
        let text = good(&self.management, &["get", &secret, "-o", path], "");
        let file = self.rack.record().join("workload.kubeconfig");
        fs::write(&file, text).unwrap();
        let file = format!("--kubeconfig={}", file.display());
        items(&good(&self.management, &[&file, "get", "nodes", "-o", "json"], ""))
    }

    /// Returns the Machines with this use.
    pub fn machines(&self, usage: &str) -> Vec<Value> {
        let mut machines = self.list("machines");
        machines.retain(|machine| is_of(machine, usage));
        machines
    }

    /// Waits until the Machines with this use are this many, and all run with a Node of this
    /// Kubernetes version.
    pub fn wait_machines(&self, usage: &str, count: usize, version: &str) {
        self.wait(&format!("{count} machines of {usage} with {version}"), || {
            let machines = self.machines(usage);
            machines.len() == count && machines.iter().all(|machine| runs(machine, version))
        });
    }

    /// Waits until this many Machines with this use run; there may be others.
    pub fn wait_running(&self, usage: &str, count: usize, version: &str) {
        self.wait(&format!("{count} running machines of {usage}"), || {
            self.machines(usage).iter().filter(|it| runs(it, version)).count() == count
        });
    }

    /// Waits for a state of the management cluster.
    pub fn wait(&self, what: &str, holds: impl FnMut() -> bool) {
        let begin = Instant::now();
        let waited = poll(what, LIMIT, holds);
        eprintln!("{:3} s: {what}", begin.elapsed().as_secs());
        waited.unwrap_or_else(|error| {
            let log = fs::read_to_string(self.rack.record().join("kubelets.txt"));
            panic!("{error}\n{}\n{}", self.problems(), log.unwrap_or_default())
        });
    }

    /// Returns the conditions of all objects that are not true, for messages of failed tests.
    fn problems(&self) -> String {
        let mut lines = String::new();
        for object in self.list("clusters,kcp,md,machines,tinkerbellclusters,tinkerbellmachines") {
            let conditions = object["status"]["conditions"].as_array().cloned();
            for condition in conditions.unwrap_or_default() {
                if condition["status"] != "True" {
                    let [kind, name] = [&object["kind"], &object["metadata"]["name"]];
                    let _ = writeln!(lines, "{kind} {name}: {condition}");
                }
            }
        }
        lines
    }
}

/// Returns true for a Machine with this use: of the control plane, or of the workers.
pub fn is_of(machine: &Value, usage: &str) -> bool {
    let label = match usage {
        manifest::CONTROL_PLANE => "cluster.x-k8s.io/control-plane",
        _ => "cluster.x-k8s.io/deployment-name",
    };
    machine["metadata"]["labels"].get(label).is_some()
}

/// Returns true if a Machine runs with a Node of this Kubernetes version.
pub fn runs(machine: &Value, version: &str) -> bool {
    let status = &machine["status"];
    status["phase"] == "Running"
        && status["nodeRef"]["name"].is_string()
        && status["nodeInfo"]["kubeletVersion"] == version
        && condition(machine, "Available").0 == "True"
}

/// Returns status, reason and message of a condition.
pub fn condition(object: &Value, kind: &str) -> (String, String, String) {
    let all = object["status"]["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|it| it["type"] == kind));
    let text = |field: &str| found.and_then(|it| it[field].as_str()).unwrap_or("").to_owned();
    (text("status"), text("reason"), text("message"))
}

/// Returns the address of the machine with this number in network 1 or 2.
fn address(network: usize, number: usize) -> String {
    format!("192.168.{network}.{}", 20 + number)
}

fn items(text: &str) -> Vec<Value> {
    let list: Value = serde_json::from_str(text).unwrap();
    list["items"].as_array().cloned().unwrap_or_default()
}
