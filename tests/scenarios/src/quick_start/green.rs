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

/// Returns true if each object in the output of `clusterctl describe cluster` has the status
/// `True`. A group has no namespace, and may have no status.
pub fn is_green(described: &str) -> bool {
    let mut lines = described.lines().skip_while(|line| !line.starts_with("NAME "));
    let Some(column) = lines.next().and_then(|header| header.find("STATUS")) else { return false };
    let rows: Vec<(bool, String)> = lines.filter_map(|line| row(line, column)).collect();
    !rows.is_empty()
        && rows.iter().all(|(is_object, status)| match status.as_str() {
            "True" => true,
            other => other.is_empty() && !is_object,
        })
}

/// Returns true for an object, such as `Machine default/edge`, with its status; `None` for a line
/// that continues a message. `column` is in characters: the branches of the tree have more bytes.
fn row(line: &str, column: usize) -> Option<(bool, String)> {
    let name = line.trim_start_matches([' ', '│', '├', '└', '─']);
    let is_row = !name.is_empty() && line.chars().count() - name.chars().count() < column;
    let second = name.split_whitespace().nth(1).unwrap_or_default();
    // A counter such as 1/1 follows the name of a group.
    let is_object = second.contains('/') && second.starts_with(char::is_alphabetic);
    let status = line.chars().skip(column).take_while(|char| !char.is_whitespace());
    is_row.then(|| (is_object, status.collect()))
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
    fn each_object_must_have_the_status_true() {
        let described = "\
NAME                                REPLICAS STATUS REASON     SINCE MESSAGE
Cluster default/edge                1/1      True   Available  2s    * InfrastructureReady: set
├─KubeadmControlPlane default/edge  1/1      True   Available  3s
│ └─Machine default/edge-kw9lt      1        True   Ready      2s    * InfrastructureReady: the
│                                                                      Status is False
├─TinkerbellCluster default/edge             True   Ready      2s
└─Workers                           1/1
  └─2 Machines...                            True   Ready      2s    See edge-a, edge-b
";
        assert!(is_green(described));
        for (from, to) in [
            ("default/edge             True ", "default/edge                  "),
            ("default/edge             True ", "default/edge             False"),
            ("...                            True   ", "...                            Unknown"),
            ("STATUS", "AAAAAA"),
        ] {
            assert_eq!(described.matches(from).count(), 1, "{from}");
            assert!(!is_green(&described.replace(from, to)), "{to}");
        }
        assert!(!is_green("") && !is_green(described.lines().next().unwrap()));
    }
}
