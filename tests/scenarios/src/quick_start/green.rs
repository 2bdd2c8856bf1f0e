//! Progress of a cluster until all its objects report success. No I/O.

use std::collections::BTreeSet;

use serde_json::Value;

/// Resources of [`EXPECTED`], for kubectl.
pub const RESOURCES: &str =
    "clusters,kubeadmcontrolplanes,machines,tinkerbellclusters,tinkerbellmachines";

/// Kinds with the condition that must be true. A cluster has at least one object of each kind.
const EXPECTED: [(&str, &str); 6] = [
    ("TinkerbellCluster", "Ready"),
    ("TinkerbellMachine", "Ready"),
    ("Machine", "Ready"),
    ("Machine", "Available"),
    ("KubeadmControlPlane", "Available"),
    ("Cluster", "Available"),
];

/// Conditions that were true in the last list of objects.
#[derive(Debug, Default)]
pub struct Green {
    reported: BTreeSet<String>,
    is_complete: bool,
}

impl Green {
    /// Reads all objects. Returns a line for each condition that is true for the first time.
    pub fn update(&mut self, objects: &[Value]) -> Vec<String> {
        let mut lines = Vec::new();
        self.is_complete = true;
        for (kind, condition) in EXPECTED {
            let mut of_kind = objects.iter().filter(|object| object["kind"] == kind).peekable();
            self.is_complete &= of_kind.peek().is_some();
            for object in of_kind {
                let is_true = is_true(object, condition) && is_whole(object);
                self.is_complete &= is_true;
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let line = format!("{kind} {name} is {condition}");
                if is_true && self.reported.insert(line.clone()) {
                    lines.push(line);
                }
            }
        }
        lines
    }

    /// Returns true if each condition was true in the last list.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }
}

fn is_true(object: &Value, kind: &str) -> bool {
    let all = object["status"]["conditions"].as_array();
    all.is_some_and(|all| all.iter().any(|it| it["type"] == kind && it["status"] == "True"))
}

/// Returns true if all machines that an object counts are ready and available. Cluster API counts
/// them later than it sets the conditions.
fn is_whole(object: &Value) -> bool {
    let status = &object["status"];
    let counts = if object["kind"] == "Cluster" { &status["controlPlane"] } else { status };
    let all = &counts["replicas"];
    ["readyReplicas", "availableReplicas", "upToDateReplicas"]
        .into_iter()
        .all(|count| counts[count] == *all)
}

/// Returns true if the output of `clusterctl describe` has the status `True`, and no other status.
pub fn is_green(described: &str) -> bool {
    let has = |status: &str| described.split_whitespace().any(|word| word == status);
    has("True") && !has("False") && !has("Unknown")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{EXPECTED, Green, is_green};

    fn objects(status: &str) -> Vec<Value> {
        let object = |(kind, condition): (&str, &str)| {
            json!({ "kind": kind, "metadata": { "name": "edge" },
                "status": { "conditions": [{ "type": condition, "status": status }] } })
        };
        EXPECTED.into_iter().filter(|(_, it)| *it == "Ready").map(object).collect()
    }

    #[test]
    fn each_condition_is_reported_once() {
        let mut green = Green::default();
        assert_eq!(green.update(&objects("False")), Vec::<String>::new());
        assert_eq!(green.update(&objects("True")).len(), 3);
        assert_eq!(green.update(&objects("True")), Vec::<String>::new());
        assert!(!green.is_complete(), "no object of other kinds");
    }

    #[test]
    fn a_control_plane_waits_for_its_machines() {
        let available = json!([{ "type": "Available", "status": "True" }]);
        let reports = |ready: u32| {
            let object = json!({ "kind": "KubeadmControlPlane", "metadata": { "name": "edge" },
                "status": { "conditions": available, "replicas": 1, "readyReplicas": ready,
                    "availableReplicas": 1, "upToDateReplicas": 1 } });
            Green::default().update(&[object]).len()
        };
        assert_eq!((reports(0), reports(1)), (0, 1));
    }

    #[test]
    fn one_status_that_is_not_true_is_noticed() {
        assert!(is_green("Cluster default/edge  1/1  True  Available"));
        assert!(!is_green("Cluster default/edge  True\n└─Machine  Unknown"));
        assert!(!is_green("Cluster default/edge  False") && !is_green(""));
    }
}
