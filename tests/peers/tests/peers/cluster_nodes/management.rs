//! A management cluster with the managers of Cluster API.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use peers::cluster_api::{ManagerPlan, Managers, Series};
use peers::{Cluster, ClusterConfig, Kubectl, poll};
use serde_json::{Value, json};

use super::manifest;

/// Timeout of each wait. A rollout replaces three machines, and Cluster API waits up to 30 s
/// between two steps.
const LIMIT: Duration = Duration::from_secs(300);

/// A management cluster, ended when dropped.
pub struct Management {
    pub kubectl: Kubectl,
    /// Log of the kubelets in memory, for messages of failed tests.
    log: PathBuf,
    _managers: Managers,
    cluster: Cluster,
}

/// Runs kubectl, and returns its output.
pub fn good(kubectl: &Kubectl, arguments: &[&str], input: &str) -> String {
    let printed = kubectl.run(arguments, input).unwrap();
    assert!(printed.success, "{arguments:?}: {printed:?}");
    printed.out
}

impl Management {
    /// Starts the cluster with this series of Cluster API. `install` installs Cluster API and the
    /// provider. `log` is the log of the kubelets in memory.
    pub fn start(
        log: PathBuf,
        series: Series,
        install: impl FnOnce(&Cluster, &ManagerPlan),
    ) -> Self {
        let mut cluster = Cluster::start(&ClusterConfig::default()).unwrap();
        let plan = ManagerPlan::new(&cluster, series).unwrap();
        install(&cluster, &plan);
        let managers = plan.start(&cluster).unwrap();
        cluster.start_controllers().unwrap();
        let kubectl = cluster.kubectl().unwrap();
        Self { kubectl, log, _managers: managers, cluster }
    }

    /// Path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.cluster.kubeconfig()
    }

    /// Kills the API server, calls `meanwhile`, and starts the API server again.
    pub fn without_api(&mut self, meanwhile: impl FnOnce()) {
        self.cluster.restart_apiserver(meanwhile).unwrap();
    }

    /// Writes a kubeconfig with embedded certificates, as the box needs it, and returns the path.
    pub fn flat_kubeconfig(&self) -> PathBuf {
        let view = ["config", "view", "--raw", "--minify", "--flatten"];
        let file = self.cluster.folder().join("flat.kubeconfig");
        fs::write(&file, good(&self.kubectl, &view, "")).unwrap();
        file
    }

    /// Applies objects by `kubectl apply` of one List.
    pub fn apply(&self, objects: &[Value]) {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        good(&self.kubectl, &["apply", "-f", "-"], &list.to_string());
    }

    /// Returns the objects of a resource, or of several with commas between them.
    pub fn list(&self, resource: &str) -> Vec<Value> {
        items(&good(&self.kubectl, &["get", resource, "-o", "json"], ""))
    }

    /// Returns the objects of a resource in all namespaces.
    pub fn list_all(&self, resource: &str) -> Vec<Value> {
        items(&good(&self.kubectl, &["get", resource, "-A", "-o", "json"], ""))
    }

    /// Returns the Nodes of the workload cluster, by the kubeconfig that Cluster API writes.
    pub fn nodes(&self) -> Vec<Value> {
        let secret = format!("secret/{}-kubeconfig", manifest::CLUSTER);
        let path = "go-template={{.data.value | base64decode}}";
        let text = good(&self.kubectl, &["get", &secret, "-o", path], "");
        let file = self.cluster.folder().join("workload.kubeconfig");
        fs::write(&file, text).unwrap();
        let file = format!("--kubeconfig={}", file.display());
        items(&good(&self.kubectl, &[&file, "get", "nodes", "-o", "json"], ""))
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

    /// Waits for a state of the cluster.
    pub fn wait(&self, what: &str, holds: impl FnMut() -> bool) {
        let begin = Instant::now();
        let waited = poll(what, LIMIT, holds);
        eprintln!("{:3} s: {what}", begin.elapsed().as_secs());
        waited.unwrap_or_else(|error| {
            let log = fs::read_to_string(&self.log);
            panic!("{error}\n{}\n{}", self.problems(), log.unwrap_or_default())
        });
    }

    /// Returns the conditions of all objects that are not true, for messages of failed tests.
    fn problems(&self) -> String {
        let mut lines = String::new();
        let all = "clusters,kcp,md,machines,tinkerbellclusters,tinkerbellmachines";
        // Without one of the kinds, kubectl fails and prints the objects of the others.
        let printed = self.kubectl.run(&["get", all, "-o", "json"], "").unwrap();
        for object in items(&printed.out) {
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
        && is_available(machine)
}

/// Returns true if an object of Cluster API's own kinds is available. Objects of v1beta1 have
/// another condition for it.
pub fn is_available(object: &Value) -> bool {
    let is_older = object["apiVersion"].as_str().unwrap().ends_with("/v1beta1");
    condition(object, if is_older { "Ready" } else { "Available" }).0 == "True"
}

/// Returns status, reason and message of a condition.
pub fn condition(object: &Value, kind: &str) -> (String, String, String) {
    let all = object["status"]["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|it| it["type"] == kind));
    let text = |field: &str| found.and_then(|it| it[field].as_str()).unwrap_or("").to_owned();
    (text("status"), text("reason"), text("message"))
}

pub(super) fn items(text: &str) -> Vec<Value> {
    let list: Value = serde_json::from_str(text).unwrap();
    list["items"].as_array().cloned().unwrap_or_default()
}
